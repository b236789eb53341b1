"""The rules of the house hold in the tree, and each of them is shown to catch what it forbids."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import doors

SOURCE = Path(__file__).parent.parent / "src"


def test_the_house_is_in_order() -> None:
    assert doors.faults(SOURCE) == []


def test_every_module_is_read() -> None:
    modules = doors.read(SOURCE)
    assert {"eyeline", "eyeline.errors", "eyeline.contracts", "eyeline.config", "eyeline.nn.scores"} <= modules.keys()
    assert len(modules) == sum(1 for _ in (SOURCE / "eyeline").rglob("*.py"))


def test_every_door_leads_to_a_room_that_exists() -> None:
    rooms = {module.room for module in doors.read(SOURCE).values()}
    assert doors.DOORS.keys() == rooms
    assert {other for seen in doors.DOORS.values() for other in seen} <= rooms


PLANTED = {
    "a wrong door at the top": ({"search/beam.py": "from eyeline.training.loop import x\n"}, "search may not see training"),
    "inside a function": ({"loss.py": "def f():\n    from eyeline import config\n"}, "loss.py:2: loss may not see config"),
    "for type checkers only": (
        {"nn/scores.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from eyeline.config import Config\n"},
        "scores.py:3: nn may not see config",
    ),
    "a relative import": ({"metrics/text.py": "from ..search import beam\n"}, "metrics may not see search"),
    "a relative import in __init__": ({"figures/__init__.py": "from ..text import lines\n"}, "figures may not see text"),
    "import with dots": ({"data/corpus.py": "import eyeline.ladder.luong\n"}, "data may not see ladder"),
    "by name at run time": (
        {"training/loop.py": "import importlib\nimportlib.import_module('eyeline.cli')\n"},
        "training may not see cli",
    ),
    "a name where only types may pass": (
        {"text/lines.py": "from eyeline.config import Config\n"},
        "text may take only Normalization, TokenizerKind from config",
    ),
    "a whole module where only types may pass": ({"text/lines.py": "from eyeline import config\n"}, "text may take only"),
    "errors that know something": ({"errors.py": "import eyeline.contracts\n"}, "errors may not see contracts"),
    "the second file of a room": ({"config_yaml.py": "import eyeline.text\n"}, "config may not see text"),
    "around the door by a public name": ({"search/beam.py": "from eyeline import load\n"}, "public names are for users"),
    "around the door by the package": ({"search/beam.py": "import eyeline\n"}, "public names are for users"),
    "the package sees the command line": ({"__init__.py": "def f():\n    import eyeline.cli\n"}, "the package may not see cli"),
    "a room without a line": ({"attic/box.py": ""}, "the room 'attic' has no line in DOORS"),
    "a cycle": (
        {"nn/a.py": "from eyeline.nn import b\n", "nn/b.py": "def f():\n    from eyeline.nn.a import x\n"},
        "a cycle: ",
    ),
    "three folders deep": ({"data/generated/dates/korean.py": ""}, "more than 2 folders"),
    "torch in a command": ({"cli/train.py": "import torch.nn\n"}, "torch.nn at import"),
    "torch behind a command": (
        {"cli/train.py": "from eyeline.nn import scores\n", "nn/__init__.py": "try:\n    import torch\nfinally:\n    pass\n"},
        "eyeline.cli.train -> eyeline.nn -> torch at import",
    ),
    "torch with the package": (
        {"__init__.py": "from eyeline.contracts import x\n", "contracts.py": "import torch\n"},
        "at import",
    ),
    "pickle": ({"files.py": "def f():\n    import pickle\n"}, "files.py:2: pickle"),
    "unpickling by torch": ({"runs.py": "x = torch.load(p, weights_only=False)\n"}, "weights_only"),
    "unpickling by torch's default": ({"runs.py": "x = torch.load(p)\n"}, "weights_only"),
    "unpickling by numpy": ({"runs.py": "x = np.load(p, allow_pickle=True)\n"}, "allow_pickle"),
    "eval": ({"runs.py": "x = eval(p)\n"}, "eval runs text"),
    "lines by Python's rules": ({"text/lines.py": "x = text.splitlines(True)\n"}, "splitlines"),
    "arguments that are swallowed": ({"nn/a.py": "def f(**kwargs): ...\n"}, "**kwargs"),
    "arguments of any kind that are swallowed": ({"nn/a.py": "def f(*args: P.args, **kwargs: Any): ...\n"}, "**kwargs"),
}


@pytest.mark.parametrize(("files", "expected"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_fault_is_caught(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    faults = doors.faults(_plant(tmp_path, files))
    assert len(faults) == 1, faults
    assert expected in faults[0]


def test_what_is_allowed_is_not_called_a_fault(tmp_path: Path) -> None:
    allowed = {
        "__init__.py": "def __getattr__(name):\n    from eyeline.predictor import load\n",
        "__main__.py": "from eyeline.cli import main\n",
        "text/lines.py": "from eyeline.config import Normalization\nfrom eyeline.errors import DataError\nimport tokenizers\n",
        "text/pairs.py": "from . import lines\nfrom .lines import read\nimport torch\n",
        "cli/train.py": "from eyeline import __version__\ndef train():\n    import torch, eyeline.training.loop\n",
        "training/loop.py": "import torch\nx = torch.load(p, weights_only=True)\n",
        "search/course.py": "def call(self, model, *args: P.args, **kwargs: P.kwargs): ...\n",
    }
    assert doors.faults(_plant(tmp_path, allowed)) == []


def _plant(place: Path, files: dict[str, str]) -> Path:
    """A small package whose rooms are empty but for `files`; returns the folder that holds it."""
    rooms = ("text", "search", "training", "ladder", "nn", "data", "metrics", "figures", "cli")
    for name in (
        *(f"{room}/__init__.py" for room in rooms),
        "__init__.py",
        "errors.py",
        "contracts.py",
        "config.py",
        "predictor.py",
    ):
        path = place / "eyeline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    for name, text in files.items():
        path = place / "eyeline" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return place


@pytest.mark.parametrize("module", ["eyeline", "eyeline.cli", "eyeline.config"])
def test_importing_brings_no_heavy_library(module: str) -> None:
    program = f"import sys, {module}; print(*sorted({doors.HEAVY!r} & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
