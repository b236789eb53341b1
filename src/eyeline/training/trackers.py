"""Where a run can be watched: TensorBoard, Weights & Biases, MLflow. Knows numbers, texts and pictures; not models.

TensorBoard's files are always written where it is installed. The other two are asked for by `training.trackers`; where and under
whose name they keep what they are told is theirs to know, by their own environment variables (WANDB_MODE, MLFLOW_TRACKING_URI…).
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from eyeline.errors import MissingExtra, require
from eyeline.files import write_json

Pixels = npt.NDArray[np.uint8]
PROJECT = "eyeline"  # what a run is filed under, unless the environment says otherwise
IDENTITIES = "trackers.json"  # in the run directory: under which name each knows this run, so that it goes on there


class Tracker(Protocol):
    """Takes in what a run tells. A step may come again: a run that was killed makes some of its steps twice."""

    def numbers(self, step: int, values: Mapping[str, float]) -> None: ...

    def text(self, name: str, step: int, text: str) -> None: ...

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        """`pixels` [height, width, 3]."""

    def close(self) -> None: ...


def open_trackers(
    asked: Sequence[str], run: Path, step: int, settings: Mapping[str, Any], warn: Callable[[str], None]
) -> list[Tracker]:
    """TensorBoard's files where it is installed, and those that are asked for.

    Args:
        step: where the run goes on.
        settings: of the run, which the services show beside it.
        warn: is told of a service that fails; the run goes on without it.

    Raises:
        MissingExtra: one that is asked for is not installed.
        OSError: a file cannot be written.
    """
    made: list[Tracker] = []
    with suppress(MissingExtra):
        made.append(TensorBoard(run / "tensorboard", step))
    services: dict[str, Callable[[Path, Mapping[str, Any]], Tracker]] = {"wandb": WeightsAndBiases, "mlflow": MLflow}
    made += [Dispensable(name, services[name](run, settings), warn) for name in asked]
    return made


class Dispensable:
    """A service whose failure does not end a run: it is said once, and told nothing more."""

    def __init__(self, name: str, service: Tracker, warn: Callable[[str], None]) -> None:
        self._name, self._service, self._warn, self._failed = name, service, warn, False

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        self._try(lambda: self._service.numbers(step, values))

    def text(self, name: str, step: int, text: str) -> None:
        self._try(lambda: self._service.text(name, step, text))

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        self._try(lambda: self._service.picture(name, step, pixels))

    def close(self) -> None:
        self._try(self._service.close)

    def _try(self, tell: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            tell()
        except Exception as error:  # theirs are of every kind
            self._failed = True
            self._warn(
                f"{self._name} fails and is told nothing more: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            )


class TensorBoard:
    """TensorBoard's event files. Raises MissingExtra where it is not installed."""

    def __init__(self, directory: Path, step: int) -> None:
        require("tensorboard", "plots")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own imports, which users can do nothing about
            from torch.utils.tensorboard import SummaryWriter

            self._board: Any = SummaryWriter(str(directory), purge_step=step + 1 if step else None)

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._board.add_scalar(name, value, step)

    def text(self, name: str, step: int, text: str) -> None:
        self._board.add_text(name, text, step)

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        self._board.add_image(name, pixels, step, dataformats="HWC")

    def close(self) -> None:
        with suppress(OSError):  # of a full disk, which was told of when a number was written
            self._board.close()


class WeightsAndBiases:
    """Weights & Biases. Its own step only rises, so that ours is a number beside the others, which they are drawn against."""

    def __init__(self, run: Path, settings: Mapping[str, Any]) -> None:
        self._library: Any = _installed("wandb")
        known = _identity(run, "wandb")
        self._run: Any = self._library.init(
            project=PROJECT, name=run.resolve().name, dir=str(run), config=dict(settings), id=known, resume="allow"
        )
        _remember(run, "wandb", str(self._run.id))
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({"step": step, **values})

    def text(self, name: str, step: int, text: str) -> None:
        self._run.log({"step": step, name: self._library.Html(f"<pre>{_escaped(text)}</pre>")})

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        self._run.log({"step": step, name: self._library.Image(pixels)})

    def close(self) -> None:
        self._run.finish()


class MLflow:
    """MLflow. Texts and pictures are artifacts, named by their step."""

    def __init__(self, run: Path, settings: Mapping[str, Any]) -> None:
        self._library: Any = _installed("mlflow")
        known = _identity(run, "mlflow")
        if known is None:
            self._library.set_experiment(PROJECT)
            begun = self._library.start_run(run_name=run.resolve().name)
            self._library.log_dict(dict(settings), "config.json")
        else:
            begun = self._library.start_run(run_id=known)
        _remember(run, "mlflow", str(begun.info.run_id))

    def numbers(self, step: int, values: Mapping[str, float]) -> None:
        self._library.log_metrics(dict(values), step=step)

    def text(self, name: str, step: int, text: str) -> None:
        self._library.log_text(text, f"{name}/{step}.txt")

    def picture(self, name: str, step: int, pixels: Pixels) -> None:
        self._library.log_image(pixels, f"{name}/{step}.png")

    def close(self) -> None:
        self._library.end_run()


def _installed(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        what = f"{library} cannot be imported: {error}"
        raise MissingExtra(what, f"training.trackers={library}", f"pip install {library}, or leave it out") from None


def _identity(run: Path, tracker: str) -> str | None:
    """Under which name a tracker knows the run, if it has begun there."""
    try:
        name = json.loads((run / IDENTITIES).read_bytes())[tracker]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(name)


def _remember(run: Path, tracker: str, name: str) -> None:
    try:
        known = dict(json.loads((run / IDENTITIES).read_bytes()))
    except (OSError, ValueError, TypeError):
        known = {}
    if known.get(tracker) != name:
        write_json(run / IDENTITIES, {**known, tracker: name})


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
