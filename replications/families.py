"""The data sets of `languages.py`: where the files of each of their languages are, what was published, and how one is trained.

Every language of a family is trained with the same settings but for what follows from its size, and the few that it needs itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Size:
    """What follows from the number of training pairs."""

    pairs: int  # at most
    epochs: int
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Family:
    """Several languages, or parts, of one data set."""

    files: tuple[str, str, str]  # of train, dev and test; {} is the language
    published: Mapping[str, str]  # language -> what was published
    source: str  # what the published figures are of
    architecture: str
    settings: Mapping[str, str]
    sizes: tuple[Size, ...]
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # language -> settings of its own
    wrong: bool = False  # figures are of what is wrong, and not of what is right
    every: int = 0  # of the training pairs, one in so many is held out for dev, where the data set has no dev

    def paths(self, data: Path, language: str, out: Path) -> tuple[Path, Path, Path]:
        """The files of train, dev and test; those that are made of others are written below `out`."""
        train, dev, test = (data / name.format(language) for name in self.files)
        if not self.every:
            return train, dev, test
        parts: dict[str, list[bytes]] = {"train": [], "dev": []}
        with train.open("rb") as lines:  # as bytes, so that LF alone ends a line
            for number, line in enumerate(lines):
                parts["train" if number % self.every else "dev"].append(line)
        out.mkdir(parents=True, exist_ok=True)
        made = []
        for name, part in parts.items():
            made.append(out / f"{name}.tsv")
            made[-1].write_bytes(b"".join(part))
        return made[0], made[1], test

    def size(self, train: Path) -> Size:
        with train.open("rb") as lines:
            pairs = sum(1 for _ in lines)
        return next(size for size in self.sizes if pairs <= size.pairs)


LEARNING = {
    "training.learning_rate": "2e-3",
    "training.schedule": "linear",
    "training.warmup_steps": "200",
    "training.label_smoothing": "0.1",
    "training.checkpoint_every": "4000",
    "training.metric": "exact_match",
}
WIDTHS = {
    "model.embedding_size": "128",
    "model.encoder_size": "128",
    "model.decoder_size": "256",
    "model.attention_size": "128",
}
CHARACTERS = {"tokenizer.kind": "character"}
TO_SYMBOLS = {**CHARACTERS, "tokenizer.target.kind": "whitespace-symbols"}
POINTING = {"model.coverage": "none"}

FAMILIES = {
    "g2p": Family(
        files=("{}_train.tsv", "{}_dev.tsv", "{}_test.tsv"),
        published={
            "eng_us": "41.9",
            "arm_e": "7.0",
            "bul": "18.3",
            "dut": "14.7",
            "fre": "8.5",
            "hbs_latn": "32.1",
            "hun": "1.8",
            "jpn_hira": "5.2",
            "kor": "16.3",
            "ady": "22.0",
            "gre": "21.0",
            "ita": "19.0",
            "khm": "34.0",
            "lav": "55.0",
            "mlt_latn": "19.0",
            "rum": "10.0",
            "slv": "49.0",
        },
        source="SIGMORPHON 2021 task 1, baseline: an ensemble of neural transducers; word error rate",
        architecture="bahdanau",
        settings={**TO_SYMBOLS, **WIDTHS, "model.dropout": "0.35", **LEARNING},
        sizes=(
            Size(1_000, 50, {"training.batch_tokens": "256", "training.validate_every": "150", "model.coverage": "location"}),
            Size(10_000, 40, {"training.batch_tokens": "1024", "training.validate_every": "400"}),
            Size(100_000, 20, {"training.batch_tokens": "2048", "training.validate_every": "400"}),
        ),
        own={"kor": {"data.normalization.source": "jamo", "data.normalization.target": "nfc"}},
        wrong=True,
    ),
    "inflection": Family(
        files=("{}_large.train", "{}.dev", "{}.gold"),
        published={
            "kor": "56.2 (51.8)",
            "ang": "61.1 (64.9)",
            "ara": "78.5 (75.9)",
            "heb": "48.5 (51.8)",
            "hun": "77.2 (72.4)",
            "hye": "69.8 (86.1)",
            "non": "85.0 (76.9)",
            "pol": "69.5 (86.5)",
            "tur": "39.7 (87.2)",
        },
        source="SIGMORPHON 2022 task 0, large: one Transformer for all languages (CLUZH, each language alone); exact match",
        architecture="pointer-generator",
        settings={
            "data.columns": "[source,target,features]",
            **CHARACTERS,
            **WIDTHS,
            **POINTING,
            "model.dropout": "0.3",
            **LEARNING,
        },
        sizes=(Size(10_000, 40, {"training.batch_tokens": "1024", "training.validate_every": "500"}),),
        own={"kor": {"data.normalization": "jamo"}},  # suffixes begin within syllables
    ),
    "transliteration": Family(
        files=("{}_train.tsv", "{}_dev.tsv", "{}_test.tsv"),
        published={"korean": "–", "russian": "59.7", "katakana": "–", "arabic": "–"},
        source="sample output of Merhav & Ash 2018, which of their systems is not said; exact match",
        architecture="bahdanau",
        settings={
            "data.columns": "[source,target,-]",
            **TO_SYMBOLS,
            **WIDTHS,
            "model.dropout": "0.2",
            **LEARNING,
        },
        sizes=(
            Size(50_000, 15, {"training.batch_tokens": "2048", "training.validate_every": "1000"}),
            Size(150_000, 8, {"training.batch_tokens": "4096", "training.validate_every": "1000"}),
        ),
    ),
    "spelling": Family(
        files=("{}.train.txt", "{}.dev.txt", "{}.test.txt"),
        published={"german-ridges": "83.8, 84.2", "slovene-goo300k-bohoric": "89.5, 89.8"},
        source="Bollmann 2019, two attentional models trained on 25,000 tokens, dev or test; exact match of a token",
        architecture="pointer-generator",
        settings={
            "data.on_bad_line": "skip",
            **CHARACTERS,
            **WIDTHS,
            **POINTING,
            "model.dropout": "0.3",
            **LEARNING,
        },
        sizes=(Size(100_000, 16, {"training.batch_tokens": "768", "training.validate_every": "1500"}),),
    ),
    "scan": Family(
        files=("train_{}.tsv", "train_{}.tsv", "test_{}.tsv"),
        published={"simple": "99.7", "length": "13.8 (from memory)", "addprim_jump": "0.1 (from memory)"},
        source="Lake & Baroni 2018, the model that was best over all tasks; exact match",
        architecture="bahdanau",
        settings={
            "tokenizer.kind": "whitespace-symbols",
            **WIDTHS,
            "model.dropout": "0.3",
            **LEARNING,
            "search.beam_size": "1",  # as published; a beam that divides by length prefers wrong numbers of repetitions
        },
        sizes=(Size(20_000, 20, {"training.batch_tokens": "1024", "training.validate_every": "1000"}),),
        every=20,
    ),
}
