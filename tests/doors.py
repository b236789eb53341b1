"""Reads a source tree and says where it breaks the rules of the house. Knows syntax trees only: nothing is imported or run.

A room is a folder or a file right below the package; a door is what a room may import from another.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "eyeline"
DEEPEST = 2  # folders below the package

_FOUNDATION = {"errors", "contracts"}
_TEXT = {"errors", "contracts", "config", "files"}
_DATA = _TEXT | {"text"}
_LADDER = {"errors", "contracts", "config", "nn"}
_RUNS = _TEXT | {"text", "ladder"}
_PREDICTOR = _RUNS | {"runs", "data", "search", "metrics", "loss", "nn"}
_EVALUATION = _PREDICTOR | {"predictor", "training", "figures"}
_EVERYTHING_INNER = _EVALUATION | {"nn", "evaluation", "starter", "tuning"}

# Who may see whom. A room that is not here fails the test: give it a line, and think about what it has to know.
DOORS: Mapping[str, set[str]] = {
    "errors": set(),
    "contracts": set(),
    "files": {"errors"},
    "memory": set(),
    "products": set(),
    "config": {"errors"},
    "text": _TEXT,
    "data": _DATA,
    "nn": _FOUNDATION | {"products"},
    "ladder": _LADDER,
    "loss": _FOUNDATION | {"products"},
    "search": _FOUNDATION,
    "metrics": _FOUNDATION,
    "figures": _FOUNDATION | {"files"},
    "runs": _RUNS,
    "training": _RUNS | {"runs", "data", "search", "metrics", "loss", "exchange", "figures"},
    "exchange": _RUNS | {"runs"},
    "predictor": _PREDICTOR,
    "evaluation": _EVALUATION,
    "bulk": _PREDICTOR | {"predictor", "memory"},
    "tuning": _RUNS | {"runs", "training", "figures"},
    "lab": _EVERYTHING_INNER - {"tuning"},
    "starter": _DATA | {"data"},
    "compare": _EVERYTHING_INNER - {"starter", "tuning"} | {"memory"},
    "quickstart": _EVERYTHING_INNER,
    "explorer": _EVERYTHING_INNER - {"training", "tuning", "starter", "figures"},
    "serving": _EVERYTHING_INNER | {"explorer"},
    "cli": _EVERYTHING_INNER | {"quickstart", "compare", "lab", "bulk", "exchange", "explorer", "serving", "memory"},
    "__main__": {"cli"},
    "": _EVERYTHING_INNER | {"explorer"},  # the package itself: lends public names, when they are asked for
}
SAME_ROOM = {
    "config_yaml": "config",
    "config_base": "config",
    "config_compare": "config",
    "config_rungs": "config",
    "config_models": "config",
    "config_data": "config",
    "config_search": "config",
    "config_training": "config",
    "config_tuning": "config",
    "loss_linear": "loss",
}  # a room may have more than one file without being a folder
TYPES_ONLY = {  # through some doors only a few names pass: of types, or of readers that know nothing else of their room
    ("text", "config"): {"Normalization", "TokenizerKind"},
    ("training", "exchange"): {"Vector", "read_vectors", "vectors_width"},
    ("training", "figures"): {"draw_heat_map", "heading", "shortened", "visible"},
}

# Slow to import: never before a command has work for them.
HEAVY = {
    "torch",
    "jinja2",
    "matplotlib",
    "sacrebleu",
    "pyarrow",
    "babel",
    "unicode_rbnf",
    "tokenizers",
    "tensorboard",
    "safetensors",
    "optuna",
    "ray",
    "ctranslate2",
    "fastapi",
    "starlette",
    "uvicorn",
    "prometheus_client",
}
EAGER = ("", "__main__", "cli")  # rooms that must start fast
PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


@dataclass(frozen=True)
class Import:
    """One imported module. `names` are what is taken from it, empty for `import module`."""

    module: str
    names: tuple[str, ...]
    line: int
    at_start: bool  # executed when the importing module is


@dataclass(frozen=True)
class Module:
    name: str  # dotted
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def room(self) -> str:
        return room(self.name)


def room(module: str) -> str:
    first = [*module.split("."), ""][1]
    return SAME_ROOM.get(first, first)


def read(source: Path) -> dict[str, Module]:
    """Every module of `source`/eyeline, by dotted name."""
    modules = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        modules[name] = Module(name, path, tree, ())
    return {
        name: Module(name, m.path, m.tree, tuple(_imports(m.tree, name, m.path.name == "__init__.py", modules.keys())))
        for name, m in modules.items()
    }


def _imports(tree: ast.Module, name: str, is_folder: bool, known: Container[str]) -> Iterator[Import]:
    """Imports at the top, inside functions, under TYPE_CHECKING, relative ones, and `import_module("…")` alike."""
    at_start = set(_run_at_import(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, node in at_start)
        elif isinstance(node, ast.ImportFrom):
            base = name.split(".") if is_folder else name.split(".")[:-1]
            above = base[: len(base) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            submodules = [alias.name for alias in node.names if f"{module}.{alias.name}" in known]
            for submodule in submodules:
                yield Import(f"{module}.{submodule}", (), node.lineno, node in at_start)
            rest = tuple(alias.name for alias in node.names if alias.name not in submodules)
            if rest:
                yield Import(module, rest, node.lineno, node in at_start)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield Import(node.args[0].value, (), node.lineno, False)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The statements that run when a module is imported: not those of functions, nor those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _run_at_import(child)


def wrong_doors(modules: Mapping[str, Module]) -> Iterator[str]:
    """Imports that the table does not allow."""
    for module in modules.values():
        if module.room not in DOORS:
            yield f"{module.path}: the room '{module.room}' has no line in DOORS"
            continue
        for wanted in module.imports:
            if wanted.module.partition(".")[0] != PACKAGE:
                continue
            other, place = room(wanted.module), f"{module.path}:{wanted.line}"
            if wanted.module == PACKAGE and module.name != PACKAGE and wanted.names != ("__version__",):
                yield f"{place}: public names are for users; import from the module that has them"
            elif other not in ("", module.room) and other not in DOORS[module.room]:
                yield f"{place}: {module.room or 'the package'} may not see {other}"
            elif (allowed := TYPES_ONLY.get((module.room, other))) is not None and not allowed.issuperset(wanted.names or {"*"}):
                yield f"{place}: {module.room} may take only {', '.join(sorted(allowed))} from {other}"


def cycles(modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules that need each other, wherever in them the imports stand."""
    graph = {
        name: {wanted.module for wanted in module.imports if wanted.module in modules and wanted.module != name}
        for name, module in modules.items()
        if name != PACKAGE  # lends names of everything, when they are asked for
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield "a cycle: " + " <- ".join(error.args[1])


def too_deep(modules: Mapping[str, Module]) -> Iterator[str]:
    for name, module in modules.items():
        folders = len(name.split(".")) - (1 if module.path.name == "__init__.py" else 2)
        if folders > DEEPEST:
            yield f"{module.path}: more than {DEEPEST} folders below {PACKAGE}"


def slow_starts(modules: Mapping[str, Module]) -> Iterator[str]:
    """Chains of imports by which a heavy library comes along with the package or the command line."""
    for start in (name for name, module in modules.items() if module.room in EAGER):
        ways = {start: start}
        queue = [start]
        while queue:
            name = queue.pop()
            for wanted in (w for w in modules[name].imports if w.at_start):
                if wanted.module.partition(".")[0] in HEAVY:
                    yield f"{modules[name].path}:{wanted.line}: {ways[name]} -> {wanted.module} at import"
                parts = wanted.module.split(".")
                for inner in (".".join(parts[:length]) for length in range(1, len(parts) + 1)):  # parents run too
                    if inner in modules and inner not in ways:
                        ways[inner] = f"{ways[name]} -> {inner}"
                        queue.append(inner)


def dangers(modules: Mapping[str, Module]) -> Iterator[str]:
    """Code that runs what a file says, splits text where no line ends, or swallows a misspelt argument."""
    for module in modules.values():
        for wanted in module.imports:
            if wanted.module.partition(".")[0] in PICKLES:
                yield f"{module.path}:{wanted.line}: {wanted.module}"
        for node in ast.walk(module.tree):
            found = ""
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg and not _passed_on(node.args):
                found = f"**{node.args.kwarg.arg} swallows a misspelt argument"
            elif isinstance(node, ast.Call):
                found = _danger(node)
            if found:
                yield f"{module.path}:{node.lineno}: {found}"


def _passed_on(arguments: ast.arguments) -> bool:
    """Whether they are those of a ParamSpec, both halves of it: all that another function takes, and nothing else."""
    several, named = (each and each.annotation and ast.unparse(each.annotation) for each in (arguments.vararg, arguments.kwarg))
    return bool(several and named) and (several, named) == (f"{str(several)[:-5]}.args", f"{str(several)[:-5]}.kwargs")


def _danger(call: ast.Call) -> str:
    function = ast.unparse(call.func)
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if isinstance(call.func, ast.Attribute) and call.func.attr == "splitlines":
        return "splitlines splits at U+2028 and seven more"
    if given.get("weights_only", "True") != "True" or (function == "torch.load" and "weights_only" not in given):
        return "weights_only=True is the only way to load"
    if given.get("allow_pickle", "False") != "False":
        return "allow_pickle"
    return f"{function} runs text" if function in ("eval", "exec") else ""


def faults(source: Path) -> list[str]:
    """Everything that is wrong with the tree below `source`, one line each with file and line."""
    modules = read(source)
    return [fault for rule in (wrong_doors, cycles, too_deep, slow_starts, dangers) for fault in rule(modules)]
