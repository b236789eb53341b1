"""Predictions of more than memory holds: a file in portions that can be gone on with, shards of Parquet on many machines.

Knows predictors, files and digests; no command line.
"""

from eyeline.bulk.fingerprints import Means, files_digest, run_digest
from eyeline.bulk.lines import Output, Seen, ToStream, predict_lines
from eyeline.bulk.places import Place, Shard, find_shards
from eyeline.bulk.resuming import Resumable, resumable
from eyeline.bulk.shards import Done, Work, predict_shard, remove_leftovers

__all__ = [
    "Done",
    "Means",
    "Output",
    "Place",
    "Resumable",
    "Seen",
    "Shard",
    "ToStream",
    "Work",
    "files_digest",
    "find_shards",
    "predict_lines",
    "predict_shard",
    "remove_leftovers",
    "resumable",
    "run_digest",
]
