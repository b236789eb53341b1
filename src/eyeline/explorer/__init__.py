"""One pair of a trained run, to be looked at: what is computed, and the page that shows it. Knows predictors; no service.

`trace` is the value, `explain` the same in a notebook or as one file. Nothing heavy is imported before it is asked for.
"""

from eyeline.explorer.explanation import Explanation, explain
from eyeline.explorer.trace import trace

__all__ = ["Explanation", "explain", "trace"]
