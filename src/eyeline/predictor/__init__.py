"""A trained run in use: text in, predictions, scores and alignments out. Knows runs, text and search; no files but the run's."""

from __future__ import annotations

from eyeline.predictor.answers import Asked, PairScore
from eyeline.predictor.inputs import SearchOptions, TooLong
from eyeline.predictor.loading import load
from eyeline.predictor.predictor import Predictor
from eyeline.predictor.terms import Term

__all__ = ["Asked", "PairScore", "Predictor", "SearchOptions", "Term", "TooLong", "load"]
