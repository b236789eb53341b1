"""Predictions of more than memory holds: a file in portions that can be gone on with, shards of Parquet on many machines.

Knows predictors, files and digests; no command line.
"""

from eyeline.bulk.fingerprints import Means, files_digest, run_digest
from eyeline.bulk.lines import Output, Seen, ToStream, predict_lines
from eyeline.bulk.resuming import Resumable, resumable

__all__ = [
    "Means",
    "Output",
    "Resumable",
    "Seen",
    "ToStream",
    "files_digest",
    "predict_lines",
    "resumable",
    "run_digest",
]
