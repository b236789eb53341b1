"""Faults of gradients, dropout and files."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from eyeline.nn import Dropout, embedding, scores

from .registry import fault


@fault("luong-general-bi-rnn-1x2", "every_parameter_gets_a_gradient")
def keys_cut_from_the_graph(patch: pytest.MonkeyPatch) -> None:
    real = scores.GeneralScore.project
    patch.setattr(scores.GeneralScore, "project", lambda self, keys: real(self, keys).detach())


@fault("seq2seq-once-rnn-1x1", "an_empty_source_stays_finite")
def padding_learns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(nn.Embedding, "forward", lambda self, ids: nn.functional.embedding(ids, self.weight))


@fault("bahdanau-rnn-1x1", "dropout_acts_in_training_alone")
def dropout_in_eval_mode(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dropout, "forward", lambda self, inputs: nn.functional.dropout(inputs, self.p, training=True))


@fault("bahdanau-rnn-1x1", "dropout_acts_in_training_alone")
def dropout_asked_for_and_none_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Dropout, "forward", lambda self, inputs: inputs)


@fault("bahdanau-rnn-1x1", "save_and_load_change_nothing")
def weights_outside_the_state_dict(patch: pytest.MonkeyPatch) -> None:
    real_init, real_forward = embedding.Embedding.__init__, embedding.Embedding.forward

    def init(self: Any, vocabulary: int, size: int, dropout: float = 0.0) -> None:
        real_init(self, vocabulary, size, dropout)
        self.offset = torch.randn(size)

    patch.setattr(embedding.Embedding, "__init__", init)
    patch.setattr(embedding.Embedding, "forward", lambda self, ids: real_forward(self, ids) + self.offset)
