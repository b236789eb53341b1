"""From files to ids: what is left out and said, what is never cut, and what two spellings of the same file must not change."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import Listener, events, reversal, settings, train, write_pairs

import eyeline
from eyeline.config import Config
from eyeline.contracts import UNKNOWN
from eyeline.errors import ConfigError, DataError, RunError
from eyeline.text.tokenizers import Tokenizer
from eyeline.training.preparation import Prepared, prepare


def prepared(folder: Path, pairs: list[tuple[str, ...]], **sections: Any) -> Prepared:
    write_pairs(folder / "train.tsv", pairs)
    write_pairs(folder / "valid.tsv", pairs[-2:])
    return prepare(settings(folder, **sections), None)


def test_blank_sides_are_left_out_and_said(tmp_path: Path) -> None:
    """A blank source at line 5 and a blank target (an odd blank) at line 9 of the forty."""
    pairs = reversal()
    pairs[4], pairs[8] = (" \u3000", pairs[4][1]), (pairs[8][0], "\u00a0")
    made = prepared(tmp_path, pairs)
    assert len(made.train.pairs) == len(made.train.sources) == len(made.train.targets) == 38
    assert [pair.line for pair in made.train.pairs] == [line for line in range(1, 41) if line not in (5, 9)]
    said = made.report.render()
    assert f"left out, empty source: 1 ({tmp_path / 'train.tsv'}:5)" in said
    assert f"left out, empty target: 1 ({tmp_path / 'train.tsv'}:9)" in said


@pytest.mark.parametrize("portion", ["train", "valid"])
def test_nothing_left_is_an_error_that_names_the_file(tmp_path: Path, portion: str) -> None:
    write_pairs(tmp_path / "train.tsv", reversal(3))
    write_pairs(tmp_path / "valid.tsv", reversal(3))
    write_pairs(tmp_path / f"{portion}.tsv", [("a", " "), ("", "b")])
    with pytest.raises(DataError, match=f"no pair is left: in each of them a side is blank .*{portion}\\.tsv"):
        prepare(settings(tmp_path), None)
    write_pairs(tmp_path / f"{portion}.tsv", [("a b c d", "a")])
    longest = {"max_length": 3, "too_long": "skip"}
    write_pairs(tmp_path / f"{'valid' if portion == 'train' else 'train'}.tsv", [("a", "b")])
    with pytest.raises(DataError, match=f"no pair is left: each has more than data\\.max_length=3 tokens .*{portion}\\.tsv"):
        prepare(settings(tmp_path, data=longest), None)


LONG = [("a b c", "c b a"), ("a b c d e", "e d"), ("a b", "b a b a b"), ("c", "c")]


@pytest.mark.parametrize("choice", ["error", "split"])
def test_a_pair_too_long_is_an_error_with_its_line(tmp_path: Path, choice: str) -> None:
    with pytest.raises(DataError) as caught:
        prepared(tmp_path, LONG, data={"max_length": 4, "too_long": choice})
    assert str(caught.value).startswith(f"a pair of more than data.max_length=4 tokens ({tmp_path / 'train.tsv'}:2); ")
    assert prepared(tmp_path, LONG, data={"max_length": 5, "too_long": choice}).report.notes() == []


def test_a_pair_too_long_is_cut_or_left_out_and_said(tmp_path: Path) -> None:
    cut = prepared(tmp_path, LONG, data={"max_length": 4, "too_long": "truncate"})
    assert [len(ids) for ids in cut.train.sources] == [3, 4, 2, 1]
    assert [len(ids) for ids in cut.train.targets] == [3, 2, 4, 1]
    train_file, valid_file = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    assert f"left out, too long, cut: 3 ({train_file}:2, 3, {valid_file}:1)" in cut.report.notes()
    left = prepared(tmp_path, LONG, data={"max_length": 4, "too_long": "skip"})
    assert [pair.line for pair in left.train.pairs] == [1, 4]
    assert [len(ids) for ids in left.train.targets] == [3, 1]
    assert f"left out, too long: 3 ({train_file}:2, 3, {valid_file}:1)" in left.report.notes()


def test_features_stand_before_the_source(tmp_path: Path) -> None:
    pairs = [("a b", "b a", "V;PST"), ("b", "b", "N"), ("a", "a", "N;PL")]
    columns = {"columns": ["source", "target", "features"]}
    made = prepared(tmp_path, pairs, data=columns)
    assert made.source.features == ("N", "PL", "PST", "V")
    assert made.target.features == ()
    first = made.source.encode("a b", ["V", "PST"]).ids
    assert made.train.sources[0] == first
    assert len(first) == 4
    assert made.train.targets[0] == made.target.encode("b a").ids
    write_pairs(tmp_path / "valid.tsv", [("a", "a", "NEVER")])
    valid = prepare(settings(tmp_path, data=columns), None).valid
    assert valid is not None
    assert valid.sources == [[UNKNOWN, *made.source.encode("a").ids]]


def test_a_shared_vocabulary_is_one(tmp_path: Path) -> None:
    made = prepared(tmp_path, [("a b", "x y"), ("b a", "y")], tokenizer={"shared": True})
    assert made.source is made.target
    assert made.train.sources[0] == made.target.encode("a b").ids
    assert made.target.decode(made.train.targets[0]) == "x y"
    config = settings(tmp_path, tokenizer={"shared": True}, training={"steps": 3})
    train(config, tmp_path / "run")
    assert not (tmp_path / "run" / "target.tokenizer.json").exists()
    assert eyeline.load(tmp_path / "run").predict(["a b"])[0].finished in (True, False)


def test_a_given_tokenizer_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "given.json"
    Tokenizer.train("character", ["f e d c b a "], 20).save(file)
    given = {"source": {"file": str(file)}}
    made = prepared(tmp_path, reversal(), tokenizer=given)
    assert made.source.kind == "character"
    assert made.target.kind == "whitespace-symbols"
    train(settings(tmp_path, tokenizer=given, training={"steps": 2}), tmp_path / "run")
    assert (tmp_path / "run" / "source.tokenizer.json").read_bytes() == file.read_bytes()
    with pytest.raises(ConfigError, match=r"lacks features of the pairs .tokenizer\.source\.file="):
        prepared(tmp_path, [("a", "b", "N")] * 3, tokenizer=given, data={"columns": ["source", "target", "features"]})


def test_a_given_tokenizer_that_is_a_pickle_is_refused_and_never_run(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return open, (str(tmp_path / "marker"), "w")

    (tmp_path / "given.json").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(RunError, match=r"given\.json") as caught:
        train(settings(tmp_path, tokenizer={"target": {"file": str(tmp_path / "given.json")}}), tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "marker").exists()
    assert not (tmp_path / "run").exists(), "nothing is written for a run that cannot begin"


def test_a_file_from_windows_is_the_same_file(tmp_path: Path) -> None:
    """BOM and CRLF: byte-identical tokenizers, the same loss of the first epoch, the same weights."""
    for name in ("plain", "windows"):
        write_pairs(tmp_path / name / "train.tsv", reversal())
        write_pairs(tmp_path / name / "valid.tsv", reversal(5, seed=4))
    for name in ("train.tsv", "valid.tsv"):
        path = tmp_path / "windows" / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    hashes = []
    for name in ("plain", "windows"):
        config = settings(tmp_path / name, training={"steps": None, "epochs": 1})
        (tmp_path / name / "config.yaml").write_bytes(
            (b"\xef\xbb\xbf" if name == "windows" else b"")
            + config.to_yaml().encode().replace(b"\n", b"\r\n" if name == "windows" else b"\n")
        )
        train(Config.from_yaml(tmp_path / name / "config.yaml"), tmp_path / name / "run")
        run = tmp_path / name / "run"
        hashes.append(
            [
                hashlib.sha256((run / file).read_bytes()).hexdigest()
                for file in ("source.tokenizer.json", "target.tokenizer.json", "model.safetensors")
            ]
        )
        assert b"\\r" not in (run / "source.tokenizer.json").read_bytes()
        assert b"\xef\xbb\xbf" not in (run / "source.tokenizer.json").read_bytes()
    assert hashes[0] == hashes[1]
    assert events(tmp_path / "plain" / "run") == events(tmp_path / "windows" / "run")


@pytest.mark.parametrize("kind", ["character", "word", "whitespace-symbols", "bpe", "unigram"])
def test_nul_bytes_are_named_or_counted(tmp_path: Path, kind: str) -> None:
    """Two files of four lines, of which one holds a NUL and one nothing but a NUL."""
    source, target = tmp_path / "a.src", tmp_path / "a.trg"
    source.write_bytes(b"a b\x00 c\nd e f\n\x00\ng h\n")
    target.write_bytes(b"c b a\nf e d\nx\nh g\n")
    files = {"train": [str(source), str(target)], "valid": [str(source), str(target)]}
    with pytest.raises(DataError, match=r"NUL character at character 4 of the line .*a\.src:1\)"):
        prepare(settings(tmp_path, data=files, tokenizer={"kind": kind}), None)
    config = settings(
        tmp_path, data={**files, "on_bad_line": "skip"}, tokenizer={"kind": kind, "size": 40}, training={"steps": 2}
    )
    said = train(config, tmp_path / "run")
    assert "NUL character: 4 (" in said
    assert f"{source}:1, 3" in said
    if kind == "unigram":  # once is enough to show that another process can load what was saved
        program = "import sys, eyeline; print(len(eyeline.load(sys.argv[1]).predict(['a b c', 'd e f', 'x', 'g h'])))"
        out = subprocess.run([sys.executable, "-c", program, tmp_path / "run"], capture_output=True, text=True, check=True)
        assert out.stdout == "4\n"
    assert len(eyeline.load(tmp_path / "run").predict(["a b c", "d e f", "x", "g h"])) == 4
    tokenizer = Tokenizer.load(tmp_path / "run" / "source.tokenizer.json")
    assert all(tokenizer.token(number) for number in range(tokenizer.size))


@pytest.mark.parametrize("kind", ["character", "word", "whitespace-symbols", "bpe", "unigram"])
def test_control_tokens_in_a_target_keep_its_length(tmp_path: Path, kind: str) -> None:
    """`x </s> y` counts all its tokens in the loss, and no id of the text is END."""
    texts = ["x </s> y", "<s> y </s>", "x <pad> <unk> y"]
    pairs = [("a b", text) for text in texts] * 3
    made = prepared(tmp_path, pairs, tokenizer={"kind": kind, "size": 60})
    corpus = made.train.corpus()
    for row, text in enumerate(texts):
        ids = made.target.encode(text).ids
        assert not {0, 2, 3} & set(ids)
        assert made.target.decode(ids) == text
        batch = corpus.batch([row])
        assert batch.target_tokens == len(ids) + 1
        assert batch.outputs.tolist() == [[*ids, 3]]


def test_the_corpus_is_read_once(tmp_path: Path) -> None:
    """Pairs may come from a pipe, which gives its content a single time."""
    if os.name != "posix":
        pytest.skip("named pipes")
    config = settings(tmp_path, training={"steps": None, "epochs": 2})
    content = (tmp_path / "train.tsv").read_bytes()
    (tmp_path / "train.tsv").unlink()
    os.mkfifo(tmp_path / "train.tsv")
    feeder = subprocess.Popen([sys.executable, "-c", f"open({str(tmp_path / 'train.tsv')!r}, 'wb').write({content!r})"])
    train(config, tmp_path / "run")
    assert feeder.wait() == 0
    assert events(tmp_path / "run", "train")[-1]["epoch"] == 2


def test_many_lines_are_encoded_as_few_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eyeline.training import portions

    whole = prepared(tmp_path, reversal(23))
    monkeypatch.setattr(portions, "CHUNK", 5)
    assert prepared(tmp_path, reversal(23)).train == whole.train


def test_normalisation_is_the_same_for_tokenizers_and_ids(tmp_path: Path) -> None:
    pairs = [("한글", "KOREAN"), ("한국", "korea")] * 2
    made = prepared(
        tmp_path, pairs, tokenizer={"kind": "character"}, data={"normalization": {"source": "jamo"}, "lowercase": True}
    )
    assert made.source.decode(made.train.sources[0]) == "\u1112\u1161\u11ab\u1100\u1173\u11af"
    assert made.target.decode(made.train.targets[0]) == "korean"
    assert UNKNOWN not in [number for ids in made.train.sources + made.train.targets for number in ids]


def test_what_a_user_is_told_before_training(tmp_path: Path) -> None:
    listener = Listener()
    train(settings(tmp_path, training={"steps": 1}), tmp_path / "run", reporter=listener)
    for expected in ("training lines         40", "validation lines       7", "bahdanau: 4,802 parameters on cpu, 1 threads"):
        assert expected in listener.text
