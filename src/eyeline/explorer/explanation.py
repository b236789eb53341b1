"""A trace as a page of its own: one file, or a frame in a notebook. Knows traces and the page's files; no model."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyeline.errors import ConfigError
from eyeline.explorer.one_file import alone
from eyeline.explorer.telling import Told
from eyeline.explorer.trace import WIDEST, trace
from eyeline.files import write_text
from eyeline.predictor import Predictor

FORMATS = (".html", ".json")


@dataclass(frozen=True)
class Explanation:
    """What one model, or several side by side, did with a source; a notebook shows it as the explorer's page."""

    traces: tuple[Told, ...]

    def __repr__(self) -> str:
        shown = ", ".join(f"{one['name']}: {one['source']['text']} → {one['target']['text']}" for one in self.traces)
        return f"<Explanation {shown}>"

    def save(self, path: str | Path) -> Path:
        """Writes the page (.html), which needs no other file and no network, or its values (.json). Returns the path.

        Raises:
            ConfigError: for another suffix.
            UserError: when the file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() not in FORMATS:
            raise ConfigError("not a kind of file that this is written as", str(path), f"valid: {', '.join(FORMATS)}")
        write_text(path, self.to_html() if path.suffix.lower() == ".html" else self.to_json() + "\n")
        return path

    def to_json(self) -> str:
        return json.dumps({"traces": list(self.traces)}, ensure_ascii=False, allow_nan=False)

    def to_html(self) -> str:
        return alone({"traces": list(self.traces)})

    def _repr_html_(self) -> str:
        """The page in a frame, of which scripts are its own and can reach nothing of the notebook."""
        inner = html.escape(self.to_html(), quote=True)
        rights = "allow-scripts allow-downloads"
        return f'<iframe sandbox="{rights}" srcdoc="{inner}" width="100%" height="780" frameborder="0"></iframe>'


def explain(
    predictor: Predictor, source: Any, target: str | None = None, *, beside: Predictor | None = None, beam_size: int | None = None
) -> Explanation:
    """What a run does with `source`, to be looked at step by step: the last line of a notebook's cell, or `.save("page.html")`.

    Args:
        source: as for `predict`.
        target: the output; what each run predicts when None.
        beside: another run, shown beside it on the same source.
        beam_size: of the search.

    Raises:
        UserError: a source or target that is none, or more of it than can be drawn.
    """
    shown = [predictor] if beside is None else [predictor, beside]
    traces = []
    for each in shown:
        tree = target is None and (beam_size or each.config.search.beam_size) <= WIDEST
        told = trace(each, source, target, beam_size=beam_size, tree=tree)
        traces.append({**told, "name": each.run.path.resolve().name})
    return Explanation(tuple(traces))
