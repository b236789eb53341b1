"""How much of a test set of inflection a run has right, by whether the lemma and the set of features were seen in training.

    python replications/unseen_features.py RUN non_large.train non.gold

Prints a Markdown table. Forms are compared in NFC, as `eyeline evaluate` does.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections import Counter
from pathlib import Path

import eyeline

KINDS = {(True, True): "both", (False, True): "features", (True, False): "lemma", (False, False): "neither"}


def rows(path: Path) -> list[list[str]]:
    """Lemma, form and features of each line, LF alone ending one."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    given = parser.parse_args()
    train, test = rows(given.train), rows(given.test)
    lemmas, features = {lemma for lemma, _, _ in train}, {tags for _, _, tags in train}
    answers = eyeline.load(given.run).predict([f"{lemma}\t{tags}" for lemma, _, tags in test], attention=False)
    words, right = Counter[str](), Counter[str]()
    for (lemma, form, tags), answer in zip(test, answers, strict=True):
        kind = KINDS[lemma in lemmas, tags in features]
        words[kind] += 1
        right[kind] += unicodedata.normalize("NFC", answer.text) == unicodedata.normalize("NFC", form)
    print("| seen in training | words | right, of 100 |\n| --- | ---: | ---: |")
    for kind in filter(words.get, KINDS.values()):
        print(f"| {kind} | {words[kind]:,} | {100 * right[kind] / words[kind]:.1f} |")


if __name__ == "__main__":
    main()
