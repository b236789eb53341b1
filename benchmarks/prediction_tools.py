"""The tools that the prediction benchmark measures: each makes of a work what turns sources into outputs of a forced length.

Weights are random, so lengths have to be forced: every tool takes `work.tokens` steps, for eyeline the last one to END. A tool
that is not installed raises ImportError.
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from training_tools import eyeline_settings, huggingface_model, joeynmt_model, rectangle, yoyodyne_model
from training_works import CHARACTERS, FIRST, Work, forward_flops

Ids = list[int]
Predict = Callable[[list[Ids]], int]  # from sources to how many tokens came out


@dataclass(frozen=True)
class Decoding:
    """A model, and how it is asked."""

    model: Work
    peers: tuple[str, ...]
    rounds: int
    sentences: int  # at a time
    beam: int
    tokens: int = 24  # of each output, END included where a tool says it


TRANSFORMER = Work("transformer", (), 0, layers=3)
LARGE = Work("transformer", (), 0, layers=6, size=512, inner=2048, heads=8, embedding=512)
CT2 = ("ctranslate2", "ctranslate2-int8")
BESIDE_TRANSFORMERS = ("eyeline-int8", *CT2, "huggingface", "joeynmt")
ATTENTIVE = Work("bahdanau", (), 0, **CHARACTERS)  # type: ignore[arg-type]
POINTER = Work("pointer-generator", (), 0, **CHARACTERS)  # type: ignore[arg-type]
WORKS = {
    "transformer-greedy": Decoding(TRANSFORMER, BESIDE_TRANSFORMERS, 9, 64, 1),
    "transformer-beam": Decoding(TRANSFORMER, BESIDE_TRANSFORMERS, 5, 64, 5),
    "transformer-greedy-single": Decoding(TRANSFORMER, BESIDE_TRANSFORMERS, 25, 1, 1),
    "transformer-beam-single": Decoding(TRANSFORMER, BESIDE_TRANSFORMERS, 15, 1, 5),
    "transformer-large-beam": Decoding(LARGE, ("eyeline-int8", *CT2), 3, 32, 5),
    "bilstm-additive-greedy": Decoding(Work("additive", (), 0), ("joeynmt",), 9, 32, 1),
    "bilstm-additive-beam": Decoding(Work("additive", (), 0), ("joeynmt",), 5, 32, 5),
    "bilstm-luong-greedy": Decoding(Work("luong-fed", (), 0), ("joeynmt",), 9, 32, 1),
    "bilstm-luong-beam": Decoding(Work("luong-fed", (), 0), ("joeynmt",), 5, 32, 5),
    "characters-attentive-beam": Decoding(ATTENTIVE, ("yoyodyne",), 5, 32, 5, 12),
    "characters-pointer-beam": Decoding(POINTER, ("yoyodyne",), 5, 32, 5, 12),
}


def flops(work: Decoding, sources: list[Ids], tool: str) -> int:
    """Of the encoder and of all steps of all hypotheses, over real tokens; see `training_works.flops` for what is counted."""
    lengths, tool = [len(source) + 1 for source in sources], tool.removesuffix("-int8")
    encoding = sum(forward_flops(work.model, length, 0, tool) for length in lengths)
    answering = sum(forward_flops(work.model, length, work.tokens, tool) for length in lengths) - encoding
    return encoding + work.beam * answering


def eyeline(work: Decoding, rounded: bool = False) -> Predict:
    from eyeline.data.corpus import Corpus, Sequences, Sources
    from eyeline.ladder import build
    from eyeline.memory import keep_freed_memory
    from eyeline.nn.packing import pack, round_weights
    from eyeline.search import search

    keep_freed_memory()  # as `eyeline predict` does
    V = work.model.vocabulary
    model = build(eyeline_settings(work.model), V, V, shared=True).eval()
    model = round_weights(model) if rounded else pack(model)
    bounds = {"min_length": work.tokens - 1, "max_length": work.tokens - 1}

    def predict(sources: list[Ids]) -> int:
        copies = work.model.kind == "pointer-generator"
        held = Sources.of(sources, sources, V) if copies else Sources.of(sources)
        batch = Corpus(held, Sequences.of(sources)).batch(np.arange(len(sources)))
        with torch.inference_mode():
            found = search(model, batch.source, beam_size=work.beam, attention=False, **bounds)
        return sum(len(answers[0].ids) + (not answers[0].finished) for answers in found)  # END was asked for in any case

    return predict


def ctranslate2(work: Decoding, precision: str = "float32") -> Predict:
    import ctranslate2
    from ctranslate2.specs import TransformerSpec

    shape, chance = work.model, np.random.default_rng(1)
    D, F, V = shape.size, shape.inner, shape.vocabulary

    def weights(*sizes: int) -> Any:
        return (chance.standard_normal(sizes) / sizes[-1] ** 0.5).astype(np.float32)

    def linear(spec: Any, columns: int, rows: int) -> None:
        spec.weight, spec.bias = weights(rows, columns), np.zeros(rows, np.float32)

    def norm(spec: Any) -> None:
        spec.gamma, spec.beta = np.ones(D, np.float32), np.zeros(D, np.float32)

    spec = TransformerSpec.from_config(shape.layers, shape.heads, pre_norm=True)
    table = weights(V, D)
    for side in (spec.encoder, spec.decoder):
        tables = side.embeddings if isinstance(side.embeddings, list) else [side.embeddings]
        tables[0].weight = table
        norm(side.layer_norm)
        for layer in side.layer:
            norm(layer.self_attention.layer_norm)
            linear(layer.self_attention.linear[0], D, 3 * D)
            linear(layer.self_attention.linear[1], D, D)
            if hasattr(layer, "attention"):
                norm(layer.attention.layer_norm)
                for part, rows in zip(layer.attention.linear, (D, 2 * D, D), strict=True):
                    linear(part, D, rows)
            norm(layer.ffn.layer_norm)
            linear(layer.ffn.linear_0, D, F)
            linear(layer.ffn.linear_1, F, D)
    spec.decoder.projection.weight = table
    words = ["<unk>", "<blank>", "<s>", "</s>", *(f"w{number}" for number in range(V - FIRST))]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization=None)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        threads = {"inter_threads": 1, "intra_threads": torch.get_num_threads()}
        translator = ctranslate2.Translator(folder, device="cpu", compute_type=precision, **threads)
    bounds = {"min_decoding_length": work.tokens, "max_decoding_length": work.tokens}

    def predict(sources: list[Ids]) -> int:
        texts = [[words[each] for each in source] for source in sources]
        found = translator.translate_batch(texts, beam_size=work.beam, return_scores=True, **bounds)
        return sum(len(answer.hypotheses[0]) for answer in found)

    return predict


def huggingface(work: Decoding) -> Predict:
    model = huggingface_model(work.model).eval()
    bounds = {"min_new_tokens": work.tokens, "max_new_tokens": work.tokens}

    def predict(sources: list[Ids]) -> int:
        ids = rectangle(sources, 1, (), (3,))
        with torch.inference_mode():
            found = model.generate(
                input_ids=ids, attention_mask=(ids != 1).long(), num_beams=work.beam, do_sample=False, use_cache=True, **bounds
            )
        return int(found.shape[0] * (found.shape[1] - 1))

    return predict


def joeynmt(work: Decoding) -> Predict:
    logging.disable(logging.CRITICAL)
    from joeynmt.batch import Batch
    from joeynmt.search import search

    model = joeynmt_model(work.model).eval()

    def predict(sources: list[Ids]) -> int:
        lengths, order = torch.tensor([len(source) + 1 for source in sources]), torch.arange(len(sources))
        given = {"src_prompt_mask": None, "trg_prompt_mask": None, "indices": order, "device": torch.device("cpu")}
        ids = rectangle(sources, 1, (), (3,))
        batch = Batch(src=ids, src_length=lengths, trg=None, pad_index=1, eos_index=3, is_train=False, **given)
        batch.sort_by_src_length()
        bounds = {"max_output_length": work.tokens, "min_output_length": work.tokens}
        found, _, _ = search(model, batch, beam_size=work.beam, beam_alpha=1.0, n_best=1, **bounds)
        return int(found.shape[0] * work.tokens)

    return predict


def yoyodyne(work: Decoding) -> Predict:
    logging.disable(logging.CRITICAL)
    from yoyodyne import data

    model = yoyodyne_model(work.model, beam_width=work.beam, max_target_length=work.tokens).eval()
    type(model).validating = property(lambda self: False)  # there is no trainer that says so

    def predict(sources: list[Ids]) -> int:
        ids = data.PaddedTensor.from_tensor(rectangle(sources, 0, (2,), (3,), 2))
        with torch.inference_mode():
            model.predict_step(data.Batch(ids), 0)
        return len(sources) * work.tokens

    return predict


def small(work: Decoding) -> Decoding:
    """The same work in no time."""
    shape = {"size": 8, "inner": 16, "heads": 2, "embedding": 8, "vocabulary": 24, "length": 6.0}
    model = dataclasses.replace(work.model, **shape)  # type: ignore[arg-type]
    return dataclasses.replace(work, model=model, sentences=min(work.sentences, 4), tokens=5)


TOOLS: dict[str, Callable[[Decoding], Predict]] = {
    "eyeline": eyeline,
    "eyeline-int8": lambda work: eyeline(work, rounded=True),
    "ctranslate2": ctranslate2,
    "ctranslate2-int8": lambda work: ctranslate2(work, "int8"),
    "huggingface": huggingface,
    "joeynmt": joeynmt,
    "yoyodyne": yoyodyne,
}
