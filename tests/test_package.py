"""The package as it is installed: what it asks for, what it ships, and that it starts with the optional libraries missing."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import typer

import doors
import eyeline
from eyeline.cli import app

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
OPTIONAL = {
    "matplotlib": "plots",
    "tensorboard": "plots",
    "babel": "generate",
    "unicode_rbnf": "generate",
    "pyarrow": "exchange",
    "ctranslate2": "exchange",
    "ray": "cluster",
    "optuna": "tune",
    "fastapi": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "python_multipart": "serve",
}
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({sorted(OPTIONAL)!r}))\n"  # importing one of them then fails


def _python(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1", **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=settings, cwd=cwd, stdin=subprocess.DEVNULL)


def _upper_bounds(requirements: list[str]) -> list[str]:
    """Requirements that are anything but a name, extras, and a lower bound."""
    return [text for text in requirements if not re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?(>=[0-9.]+)?( *;.*)?", text)]


# What it asks for


def test_only_lower_bounds() -> None:
    assert PROJECT["requires-python"] == ">=3.11"
    assert _upper_bounds(PROJECT["dependencies"] + [text for extra in EXTRAS.values() for text in extra]) == []


@pytest.mark.parametrize(
    "planted", ["torch==2.13.0", "torch>=2.4,<3", "torch~=2.4", "torch<3", "torch>2", "torch!=2.5", "torch===2"]
)
def test_an_upper_bound_is_caught(planted: str) -> None:
    assert _upper_bounds(["numpy>=1.26", planted, "eyeline[plots,generate]"]) == [planted]


def test_the_core_is_small() -> None:
    core = {re.split(r"[>=]", text)[0].lower() for text in PROJECT["dependencies"]}
    assert core == {
        "torch", "numpy", "tokenizers", "safetensors", "pydantic", "pyyaml", "typer", "rich", "sacrebleu", "rapidfuzz",
        "jinja2",
    }  # fmt: skip


def test_all_means_every_extra() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"[a-z]+", everything.partition("[")[2])) == EXTRAS.keys() - {"all", "dev"}


def test_every_python_that_is_claimed_is_named() -> None:
    claimed = {text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text}
    assert claimed == {"3.11", "3.12", "3.13", "3.14"}


def test_an_optional_library_is_asked_for_under_the_extra_that_brings_it() -> None:
    asked = [
        (ast.literal_eval(node.args[0]).partition(".")[0], ast.literal_eval(node.args[1]))
        for module in doors.read(ROOT / "src").values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require"
    ]
    assert dict(asked) == OPTIONAL
    for library, extra in asked:
        assert any(text.startswith(library.replace("_", "-") + ">=") for text in EXTRAS[extra])


# What it ships


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files of a wheel that is built from this tree."""
    place = tmp_path_factory.mktemp("wheel")
    built = _python("-m", "hatchling", "build", "-t", "wheel", "-d", str(place), cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (path,) = place.glob(f"eyeline-{eyeline.__version__}-py3-none-any.whl")
    with zipfile.ZipFile(path) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_whole_package_and_nothing_else(wheel: set[str]) -> None:
    tracked = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src" / "eyeline").rglob("*") if p.is_file()}
    tracked = {name for name in tracked if "__pycache__" not in name}
    about = f"eyeline-{eyeline.__version__}.dist-info"
    assert {name for name in wheel if not name.startswith(about)} == tracked
    assert {"eyeline/py.typed", f"{about}/licenses/LICENSE", f"{about}/entry_points.txt"} <= wheel


def test_the_quickstarts_data_is_in_the_wheel(wheel: set[str]) -> None:
    assert {f"eyeline/data/samples/dates.{part}.tsv.gz" for part in ("train", "valid", "test")} <= wheel


# What it offers


def test_public_names_are_there() -> None:
    assert set(eyeline.__all__) <= set(dir(eyeline))
    for name in eyeline.__all__:
        assert getattr(eyeline, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = eyeline.lode


def test_the_commands_of_the_contract_are_there() -> None:
    assert {"quickstart", "init", "train", "predict", "score", "evaluate", "align", "attend", "info"} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_needs_nothing_slow_or_optional(command: str) -> None:
    heavy = f"sys.modules.update(dict.fromkeys({sorted(doors.HEAVY)!r}))\n"
    run = f"from eyeline.cli import main; main([{command!r}, '--help'])"
    shown = _python("-c", BLOCK + heavy + run)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"Usage: eyeline {command}" in shown.stdout
    for option in ("--seed", "--device", "--threads", "--quiet", "--verbose", "-q", "-v", "--help"):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown.stdout), option


def test_help_loads_nothing_heavy() -> None:
    """So that it is there at once, on any machine."""
    heavy = "{'torch', 'numpy', 'tokenizers', 'sacrebleu', 'matplotlib', 'pyarrow', 'optuna', 'ray', 'fastapi', 'numba'}"
    program = f"""
import sys
from eyeline.cli import main
sys.argv = ["eyeline", "train", "--help"]
try:
    main()
except SystemExit as end:
    print("ended", end.code)
print("loaded", sorted({heavy} & set(sys.modules)))
"""
    shown = _python("-c", program)
    assert shown.stdout.endswith("ended 0\nloaded []\n"), shown.stdout[-200:] + shown.stderr


def test_version() -> None:
    shown = _python("-m", "eyeline", "--version")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, f"eyeline {eyeline.__version__}\n", "")


def test_it_works_from_anywhere_and_from_any_path(tmp_path: Path) -> None:
    place = tmp_path / "ein Ordner für 한글"
    shutil.copytree(ROOT / "src", place, ignore=shutil.ignore_patterns("__pycache__"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    program = "import eyeline; print(eyeline.__file__)"
    assert _python("-c", program, cwd=elsewhere, PYTHONPATH=str(place)).stdout.startswith(str(place))
    shown = _python("-m", "eyeline", "init", cwd=elsewhere, PYTHONPATH=str(place), LC_ALL="C", PYTHONUTF8="0")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith("# ")
    for path in (place, *place.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


# Without the optional libraries

WITHOUT = {
    "every module is imported": (
        "import importlib, pkgutil, eyeline\n"
        "for module in pkgutil.walk_packages(eyeline.__path__, 'eyeline.'):\n"
        "    if not module.name.endswith('__main__') and not module.name.startswith('eyeline.serving'):\n"
        "        importlib.import_module(module.name)\n",
        "",
    ),
    "a picture": (
        "from eyeline.figures import AlignmentMatrix\nAlignmentMatrix(['a'], ['b'], [[1.0]]).save('a.png')\n",
        "this needs matplotlib, which is not installed; pip install 'eyeline[plots]'",
    ),
    "numbers of a picture": (
        "from eyeline.figures import AlignmentMatrix\nAlignmentMatrix(['a'], ['b'], [[1.0]]).save('a.json')\n",
        "",
    ),
    "dates": (
        "from eyeline.data.generated.dates import dates\ndates(5, 1)\n",
        "this needs babel, which is not installed; pip install 'eyeline[generate]'",
    ),
    "numerals": (
        "from eyeline.data.generated.numerals import numerals\nnumerals(5, 1)\n",
        "this needs unicode_rbnf, which is not installed; pip install 'eyeline[generate]'",
    ),
    "the dates that ship with the package": (
        "from eyeline.data.generated import sample\n"
        "from eyeline.text.pairs import read_pairs\n"
        "assert len(list(read_pairs([str(sample('dates', 'test'))], ['source', 'target', '-'])))\n",
        "",
    ),
    "Parquet": (
        "from eyeline.text.pairs import read_pairs\nopen('a.parquet', 'wb').close()\nlist(read_pairs(['a.parquet']))\n",
        "this needs pyarrow, which is not installed; pip install 'eyeline[exchange]'",
    ),
    "the service": (
        "from eyeline.cli.serve import serve\nserve(['nothing'])\n",
        "this needs fastapi, which is not installed; pip install 'eyeline[serve]'",
    ),
    "a journal without TensorBoard": (
        "from pathlib import Path\n"
        "from eyeline.training.journal import Journal\n"
        "journal = Journal(Path('.'), 0)\n"
        "journal.log('train', 1, {'loss': 1.0})\n"
        "assert not journal.trackers\n"
        "journal.close()\n",
        "",
    ),
}


@pytest.mark.parametrize(("program", "expected"), WITHOUT.values(), ids=WITHOUT.keys())
def test_without_the_optional_libraries(tmp_path: Path, program: str, expected: str) -> None:
    indented = program.rstrip("\n").replace("\n", "\n    ")
    caught = f"from eyeline.errors import MissingExtra\ntry:\n    {indented}\nexcept MissingExtra as error:\n    print(error)\n"
    done = _python("-W", "error", "-c", BLOCK + caught, cwd=tmp_path)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, expected, "")
