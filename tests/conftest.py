"""How tests run: one thread a process, the same draws every time, no time limit on examples. Knows nothing that they test."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from toy_runs import ToyRuns

# Before torch is first imported, and for every process that a test starts: workers share the cores among themselves.
for library in ("OMP", "MKL", "OPENBLAS"):
    os.environ[f"{library}_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

hypothesis.settings.register_profile("eyeline", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "eyeline")


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Torch's generator starts alike in every test, whatever ran before it; tests without torch do not import it."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(1)


@pytest.fixture
def small_layers_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 8 bits, also those that are too small to gain by it."""
    monkeypatch.setattr("eyeline.nn.packing.LARGE", 0)


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory) -> ToyRuns:
    """Trained runs, made when first asked for."""
    from toy_runs import ToyRuns

    return ToyRuns(tmp_path_factory.mktemp("toys"))
