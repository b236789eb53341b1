"""The tools that the training benchmark measures: each makes of a work a model and a training step, and batches.

A step is everything from ids to changed weights: padding, forward, backward, Adam; dropout 0.1, no clipping, no label smoothing.
A tool that is not installed raises ImportError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from training_works import FIRST, Pair, Work

Step = Callable[[list[Pair]], float]  # the loss a token
Batching = Callable[[list[Pair], int], list[list[Pair]]]  # an epoch's batches, from all pairs and the number of the epoch
DROPOUT = 0.1


def rectangle(
    rows: list[list[int]], padding: int, before: tuple[int, ...] = (), after: tuple[int, ...] = (), shift: int = 0
) -> Tensor:
    """[B, width] ids, each row between what stands `before` and `after` it."""
    width = max(map(len, rows)) + len(before) + len(after)
    made = np.full((len(rows), width), padding, dtype=np.int64)
    for number, row in enumerate(rows):
        whole = [*before, *(each + shift for each in row), *after]
        made[number, : len(whole)] = whole
    return torch.from_numpy(made)


def no_batching(pairs: list[Pair], epoch: int) -> list[list[Pair]]:
    raise LookupError("its batching is not measured")


# ---- eyeline ------------------------------------------------------------------------------------------------------------


def eyeline(work: Work) -> tuple[Step, Batching]:
    from eyeline.config import TrainingSettings
    from eyeline.data.batches import epoch_batches
    from eyeline.data.corpus import Corpus, Sequences, Sources
    from eyeline.ladder import build
    from eyeline.loss import negative_log_likelihood
    from eyeline.memory import keep_freed_memory
    from eyeline.training.optimizers import make_optimizer

    keep_freed_memory()

    V = work.vocabulary
    model = build(eyeline_settings(work), V, V, shared=True).train()
    optimizer = make_optimizer(model, TrainingSettings(steps=1, learning_rate=3e-4))

    def step(pairs: list[Pair]) -> float:
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        held = Sources.of(sources, sources, V) if work.kind == "pointer-generator" else Sources.of(sources)
        batch = Corpus(held, Sequences.of(targets)).batch(np.arange(len(pairs)))
        said = model(batch.source, batch.inputs)
        loss = negative_log_likelihood(model.head, said, batch.source, batch.outputs, batch.target_mask)
        (loss.objective / loss.tokens).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.nll) / loss.tokens

    def batching(pairs: list[Pair], epoch: int) -> list[list[Pair]]:
        sources, targets = ([len(pair[side]) + 1 for pair in pairs] for side in (0, 1))
        return [[pairs[row] for row in rows] for rows in epoch_batches(sources, targets, work.tokens, 1, epoch)]

    return step, batching


def eyeline_settings(work: Work) -> Any:
    from eyeline.config_models import BahdanauSettings, LuongSettings, PointerGeneratorSettings, TransformerSettings

    shape: dict[str, Any] = {"dropout": DROPOUT, "encoder_layers": work.layers, "decoder_layers": work.layers}
    if work.kind == "transformer":
        return TransformerSettings(size=work.size, heads=work.heads, feedforward_size=work.inner, tie_output=True, **shape)
    shape |= {"embedding_size": work.embedding, "encoder_size": work.size, "decoder_size": work.size}
    shape |= {"cell": "lstm", "bidirectional": True}
    makers: dict[str, Callable[[], Any]] = {
        "additive": lambda: LuongSettings(**shape, score="concat", input_feeding=False),
        "luong": lambda: LuongSettings(**shape, score="general", input_feeding=False),
        "luong-fed": lambda: LuongSettings(**shape, score="general", input_feeding=True),
        "bahdanau": lambda: BahdanauSettings(**shape, attention_size=work.size, coverage="none"),
        "pointer-generator": lambda: PointerGeneratorSettings(**shape, attention_size=work.size, coverage="none"),
    }
    return makers[work.kind]()


# ---- its peers ----------------------------------------------------------------------------------------------------------


def joeynmt_model(work: Work) -> Any:
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    names = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}
    special = SimpleNamespace(
        **{f"{name}_token": text for name, text in names.items()},
        **{f"{name}_id": number for number, name in enumerate(names)},
        sep_token=None,
        sep_id=None,
        lang_tags=[],
    )
    words = Vocabulary([f"w{number}" for number in range(work.vocabulary - FIRST)], special)
    return build_model(joeynmt_config(work), src_vocab=words, trg_vocab=words)


def joeynmt(work: Work) -> tuple[Step, Batching]:
    logging.disable(logging.CRITICAL)
    from joeynmt.batch import Batch
    from joeynmt.datasets import TokenBatchSampler

    model = joeynmt_model(work)
    model.loss_function = ("crossentropy", 0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def step(pairs: list[Pair]) -> float:
        source, target = rectangle([s for s, _ in pairs], 1, (), (3,)), rectangle([t for _, t in pairs], 1, (2,), (3,))
        lengths, order = torch.tensor([len(s) + 1 for s, _ in pairs]), torch.arange(len(pairs))
        given = {"src_prompt_mask": None, "trg_prompt_mask": None, "indices": order, "device": torch.device("cpu")}
        batch = Batch(src=source, src_length=lengths, trg=target, pad_index=1, eos_index=3, is_train=True, **given)
        model.train()
        batch.sort_by_src_length()
        summed, _, _, right = model(return_type="loss", **vars(batch))
        loss = batch.normalize(summed, normalization="tokens")
        loss.backward()
        right.item()  # as its trainer does
        optimizer.step()
        model.zero_grad()
        return float(loss.detach())

    def batching(pairs: list[Pair], epoch: int) -> list[list[Pair]]:
        rows = [(number, *pair) for number, pair in enumerate(pairs)]
        order = np.random.default_rng(epoch).permutation(len(pairs)).tolist()
        sampler = TokenBatchSampler(Ordered(rows, order), batch_size=work.tokens, drop_last=False, seed=1)
        return [[pairs[row] for row in made] for made in sampler]

    return step, batching


class Ordered(torch.utils.data.Sampler[int]):
    """Rows in an order that is given."""

    def __init__(self, rows: list[Any], order: list[int]) -> None:
        self.data_source, self.order = rows, order

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)


def joeynmt_config(work: Work) -> dict[str, Any]:
    def side() -> dict[str, Any]:
        table: dict[str, Any] = {"embedding_dim": work.embedding, "scale": work.kind == "transformer", "dropout": DROPOUT}
        if work.kind == "transformer":
            shape = {"num_layers": work.layers, "num_heads": work.heads, "hidden_size": work.size, "ff_size": work.inner}
            return {"type": "transformer", "embeddings": table, "dropout": DROPOUT, "layer_norm": "pre", **shape}
        shape: dict[str, Any] = {
            "rnn_type": "lstm",
            "hidden_size": work.size,
            "num_layers": 1,
            "dropout": DROPOUT,
            "bidirectional": True,
        }
        return {"type": "recurrent", "embeddings": table, **shape}

    decoder = side()
    if work.kind != "transformer":
        del decoder["bidirectional"]
        decoder["attention"] = "bahdanau" if work.kind == "additive" else "luong"
        decoder |= {"input_feeding": work.kind == "luong-fed", "init_hidden": "bridge", "hidden_dropout": DROPOUT}
    config = {"encoder": side(), "decoder": decoder, "tied_embeddings": True, "tied_softmax": work.kind == "transformer"}
    return config | {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform"}


def huggingface_model(work: Work) -> Any:
    from transformers import MarianConfig, MarianMTModel

    both = {"layers": work.layers, "ffn_dim": work.inner, "attention_heads": work.heads}
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in both.items()}
    ids = {"pad_token_id": 1, "eos_token_id": 3, "bos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None}
    drop = {"dropout": DROPOUT, "attention_dropout": DROPOUT, "activation_dropout": 0.0}
    shape = {"vocab_size": work.vocabulary, "d_model": work.size, "activation_function": "relu", "scale_embedding": True}
    config = MarianConfig(**shape, **sides, **ids, **drop, use_cache=False, max_position_embeddings=128)
    return MarianMTModel(config)


def huggingface(work: Work) -> tuple[Step, Batching]:
    model = huggingface_model(work).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)

    def step(pairs: list[Pair]) -> float:
        source, target = (rectangle([pair[side] for pair in pairs], 1, (), (3,)) for side in (0, 1))
        inputs = torch.cat([torch.full((len(pairs), 1), 2), target[:, :-1]], 1)
        labels = target.masked_fill(target == 1, -100)
        loss = model(input_ids=source, attention_mask=(source != 1).long(), decoder_input_ids=inputs, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step, no_batching


def yoyodyne_model(work: Work, **search: int) -> Any:
    """`search`: the width of its beam and the longest output, which its models are made with."""
    from yoyodyne import models
    from yoyodyne.models import modules

    V = work.vocabulary + 2  # reserves six ids
    sizes = {"vocab_size": V, "target_vocab_size": V, "embedding_size": work.embedding, "decoder_dropout": DROPOUT, **search}
    below = {"embedding_size": work.embedding, "dropout": DROPOUT}
    if work.kind == "transformer":
        encoder = modules.TransformerEncoder(attention_heads=work.heads, hidden_size=work.inner, layers=work.layers, **below)
        above = {"decoder_attention_heads": work.heads, "decoder_hidden_size": work.inner, "decoder_layers": work.layers}
        return models.TransformerModel(source_encoder=encoder, **sizes, **above)
    kind = models.SoftAttentionLSTMModel if work.kind == "bahdanau" else models.PointerGeneratorLSTMModel
    encoder = modules.LSTMEncoder(hidden_size=work.size, **below)
    return kind(source_encoder=encoder, decoder_hidden_size=work.size, **sizes)


def yoyodyne(work: Work) -> tuple[Step, Batching]:
    logging.disable(logging.CRITICAL)
    from yoyodyne import data

    model = yoyodyne_model(work).train()
    model.log = lambda *given, **named: None
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)

    def step(pairs: list[Pair]) -> float:
        source = data.PaddedTensor.from_tensor(rectangle([s for s, _ in pairs], 0, (2,), (3,), 2))
        target = data.PaddedTensor.from_tensor(rectangle([t for _, t in pairs], 0, (), (3,), 2))
        loss = model.training_step(data.Batch(source, target=target), 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step, no_batching


# ---- a look alone -------------------------------------------------------------------------------------------------------


def looking(tool: str, work: Work) -> Callable[[], float]:
    """Additive scores of all positions with all, weights, context and every gradient: eyeline's, or the plain formula's."""
    B, S, A = work.sentences, int(work.length), work.size
    query, keys = (torch.randn(B, S, A, requires_grad=True) for _ in range(2))
    vector, values = torch.randn(A, requires_grad=True), torch.randn(B, S, 2 * A)
    scores = plain_scores
    if tool == "eyeline":
        from eyeline.nn.additive import additive_scores as scores

    def look() -> float:
        query.grad = keys.grad = vector.grad = None
        cost = (scores(query, keys, vector).softmax(-1) @ values).square().mean()
        cost.backward()  # type: ignore[no-untyped-call]
        return float(cost.detach())

    return look


def plain_scores(query: Tensor, keys: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + keys[:, None]) @ vector


TOOLS: dict[str, Callable[[Work], tuple[Step, Batching]]] = {
    "eyeline": eyeline,
    "joeynmt": joeynmt,
    "huggingface": huggingface,
    "yoyodyne": yoyodyne,
}
