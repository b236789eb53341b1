"""An experiment from its name to the files it leaves: `result.json`, NAME.png, NAME.svg. Knows no single experiment."""

from __future__ import annotations

import platform
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from eyeline import __version__
from eyeline.config_yaml import config_error, override
from eyeline.errors import MissingExtra
from eyeline.figures import save_lines
from eyeline.files import cannot_write, write_json
from eyeline.lab.bench import Bench, Experiment
from eyeline.lab.findings import Findings, plain

RESULT = "result.json"


def conduct(
    experiment: Experiment,
    out: str | Path,
    bench: Bench,
    settings: Sequence[str] = (),
    warn: Callable[[str], None] = lambda text: None,
) -> tuple[Findings, list[Path]]:
    """Measures, and writes what was found into the directory `out`.

    Args:
        settings: `NAME=VALUE` each, in the place of the experiment's own.
        warn: is told when there can be no figure.

    Returns:
        The findings, and the files.

    Raises:
        ConfigError: a setting that the experiment does not have or that cannot be.
        UserError: `out` cannot be written to, which is known before anything is measured.
    """
    given = settings_of(experiment, settings)
    out = Path(out)
    _writable(out)
    torch.manual_seed(bench.seed)
    began, worked = time.perf_counter(), time.process_time()
    findings: Findings = experiment.measure(given, bench)
    spent = {"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - worked}
    result = {
        "experiment": experiment.name,
        "claim": experiment.claim,
        "settings": given.model_dump(mode="json"),
        "seed": bench.seed,
        "run": None if bench.predictor is None else str(bench.predictor.run.path),
        "versions": {
            "eyeline": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "machine": {"device": str(bench.device), "threads": torch.get_num_threads(), "processor": processor()},
        **spent,
        "verdict": list(findings.verdict),
        "tables": [table.to_dict() for table in findings.tables],
        "values": dict(findings.values),
        "figure": [panel.to_dict() for panel in findings.panels],
    }
    write_json(out / RESULT, plain(result))
    return findings, [out / RESULT, *_draw(experiment.name, out, findings, bench, warn)]


def settings_of(experiment: Experiment, given: Sequence[str]) -> Any:
    """The experiment's settings with `NAME=VALUE` in their place. Raises ConfigError."""
    values = override({}, given)
    try:
        return experiment.settings.model_validate(values)
    except ValidationError as error:
        raise config_error(error, values, experiment.settings, "--set") from None


def _writable(out: Path) -> None:
    """Makes the directory, and tries it. Raises UserError."""
    probe = out / f".{uuid.uuid4().hex[:8]}.partial"
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise cannot_write(error, out) from None


def _draw(name: str, out: Path, findings: Findings, bench: Bench, warn: Callable[[str], None]) -> list[Path]:
    """The figure as PNG and SVG, where matplotlib is installed."""
    note = f"eyeline {__version__} lab {name}, seed {bench.seed}"
    try:
        return [save_lines(out / f"{name}{suffix}", findings.panels, findings.title, note) for suffix in (".png", ".svg")]
    except MissingExtra as error:
        warn(f"no figure: {error}")
        return []


def processor() -> str:
    """The processor's name, as the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
