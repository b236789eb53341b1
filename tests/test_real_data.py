"""A small real task from end to end: Greek words to phones, 800 of them, where a folder of data sets is named by EYELINE_DATA."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eyeline.config import Config

DATA = Path(os.environ.get("EYELINE_DATA", "")) / "sigmorphon2021-g2p"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (DATA / "gre_train.tsv").is_file(), reason="EYELINE_DATA names no folder of data sets"),
]


def test_greek_pronunciation_is_learnt_from_800_words(tmp_path: Path) -> None:
    import eyeline
    from eyeline.evaluation import align_pairs, evaluate, read_for

    config = Config.from_dict(
        {
            "data": {"train": str(DATA / "gre_train.tsv"), "valid": str(DATA / "gre_dev.tsv")},
            "tokenizer": {"kind": "character", "target": {"kind": "whitespace-symbols"}},
            "model": {"architecture": "luong", "embedding_size": 64, "encoder_size": 64, "decoder_size": 128, "dropout": 0.2},
            "training": {
                "epochs": 25,
                "batch_tokens": 512,
                "learning_rate": 3e-3,
                "schedule": "linear",
                "validate_every": 100,
                "metric": "symbol_error_rate",
            },
        }
    )
    eyeline.train(config, tmp_path / "greek")
    predictor = eyeline.load(tmp_path / "greek")
    pairs = read_for(predictor, [str(DATA / "gre_test.tsv")])
    result = evaluate(predictor, pairs)
    assert result["n"] == 100
    assert result["metrics"]["symbol_error_rate"]["score"] < 20  # 10.0 when this was written
    assert all(links for links in align_pairs(predictor, pairs, words=True))
