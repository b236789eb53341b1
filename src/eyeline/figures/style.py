"""What all pictures share: matplotlib under settings of our own, ink, resolution. Knows nothing of what is drawn."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from eyeline.errors import require
from eyeline.figures.fonts import FIRST

INK, FAINT = "#1b2330", "#66707d"
DPI = 150

_DRAWING = threading.Lock()  # matplotlib's settings and Python's warning filters belong to the whole process


@contextmanager
def own_settings() -> Iterator[None]:
    """matplotlib's defaults, whatever style the user has set, and text that stays text in SVG."""
    matplotlib = require("matplotlib", "plots")
    process_wide = ("backend", "backend_fallback", "interactive", "toolbar", "timezone")
    settings = {name: value for name, value in matplotlib.rcParamsDefault.items() if name not in process_wide}
    settings |= {"svg.fonttype": "none", "svg.hashsalt": "eyeline", "font.sans-serif": [FIRST]}
    with _DRAWING, matplotlib.rc_context(settings), warnings.catch_warnings():
        # a character that only the reader's browser can draw is measured by matplotlib's fonts, which lack it
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield
