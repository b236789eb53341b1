"""How weights are found: bounds, batches, optimiser, schedule, what is minimised, what is kept. Settings alone."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from eyeline.config_base import Duration, Fraction, Real, Settings, Whole

Metric = Literal["loss", "exact_match", "symbol_error_rate", "wer", "cer", "bleu", "chrf", "ter"]
LOWER_IS_BETTER = frozenset({"loss", "symbol_error_rate", "wer", "cer", "ter"})


class TrainingSettings(Settings):
    steps: Whole | None = Field(None, ge=1)
    """total number of updates; or epochs, target_tokens, or for"""
    epochs: Whole | None = Field(None, ge=1)
    """passes over the data"""
    target_tokens: Whole | None = Field(None, ge=1)
    """target tokens seen, the end of each target counted"""
    for_: Duration | None = Field(None, alias="for")
    """wall-clock time, such as 45m; a schedule that ends fits itself to it"""
    batch_tokens: Whole = Field(4096, ge=1)
    """padded tokens a batch: rows times the longer of its longest source and target"""
    accumulate: Whole = Field(1, ge=1)
    """batches to one update; the gradient is the mean over all their target tokens"""
    workers: Whole = Field(0, ge=0, le=64)
    """threads that make batches ahead of time; the batches are the same with any number of them"""
    optimizer: Literal["adam", "adamw", "schedule-free"] = "adam"
    """adam; adamw, whose weight decay is apart from the gradient; schedule-free, adamw that averages instead of a schedule"""
    learning_rate: Real = Field(1e-3, gt=0)
    """the rate at its peak"""
    weight_decay: Real = Field(0.0, ge=0)
    """pull of every weight towards zero"""
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    """how slowly the optimiser's running means of the gradient and of its square forget"""
    schedule: Literal["constant", "inverse-sqrt", "linear", "cosine", "plateau"] = "constant"
    """constant; inverse-sqrt after the warm-up; linear or cosine to zero at the end; plateau: times decay, when no better"""
    warmup_steps: Whole = Field(0, ge=0)
    """steps of linear rise to learning_rate"""
    decay: Real = Field(0.5, gt=0, lt=1)
    """plateau: the factor"""
    decay_patience: Whole = Field(2, ge=0)
    """plateau: validations without improvement that are borne before the rate falls"""
    min_learning_rate: Real = Field(1e-6, ge=0)
    """plateau: the floor"""
    label_smoothing: Real = Field(0.0, ge=0, lt=1)
    """mass spread evenly over the vocabulary; real tokens only"""
    coverage_loss: Real = Field(0.0, ge=0)
    """weight of See et al.'s coverage loss, which keeps attention from looking again where it has looked"""
    guided_alignment: Real = Field(0.0, ge=0)
    """weight of the loss that draws attention to the gold links of the pairs (Chen et al. 2016)"""
    source_word_dropout: Fraction = 0.0
    """share of source symbols that are read as unknown, drawn anew each time; numbers of real-valued sources: as zeros"""
    target_word_dropout: Fraction = 0.0
    """the same of the symbols that the decoder is fed; what it should say stays"""
    r_drop: Real = Field(0.0, ge=0)
    """weight of R-Drop (Liang et al. 2021): two passes with different dropout should say the same; twice the memory a batch"""
    scheduled_sampling: Real = Field(0.0, ge=0, le=1)
    """share of the symbols fed to the decoder that are drawn from the model itself (Bengio et al. 2015)"""
    scheduled_sampling_steps: Whole = Field(0, ge=0)
    """updates over which that share rises from zero"""
    minimum_risk: Real = Field(0.0, ge=0)
    """weight of minimum-risk training (Shen et al. 2016): what outputs drawn from the model cost in expectation"""
    risk_metric: Literal["symbol_error_rate", "exact_match", "bleu"] = "symbol_error_rate"
    """minimum_risk: what an output costs, of tokens: edits a gold token, any difference, or what sentence BLEU lacks of 1"""
    risk_candidates: Whole = Field(5, ge=2)
    """minimum_risk: outputs drawn for each source, the gold one beside them; a batch takes as many times its memory"""
    clip_norm: Real = Field(1.0, ge=0)
    """largest gradient norm; 0 leaves gradients alone"""
    validate_every: Whole = Field(500, ge=1)
    """steps between validations"""
    checkpoint_every: Whole = Field(500, ge=1)
    """steps between checkpoints"""
    keep_checkpoints: Whole = Field(2, ge=1)
    """the newest that are kept, by number"""
    from_: str | None = Field(None, alias="from")
    """a run directory whose weights this run starts from"""
    from_vocabulary: Literal["keep", "new"] = "keep"
    """from: keep that run's vocabularies, or make new ones, which take over what is known of the symbols that both have"""
    freeze: list[str] = []
    """weights that stay as they are, by patterns of their names, such as encoder.* or *.table.weight"""
    source_vectors: str | None = None
    """word vectors that the source embedding starts from: a file of word2vec, GloVe or fastText"""
    target_vectors: str | None = None
    """the same for the target embedding"""
    metric: Metric = "loss"
    """what decides which weights are the best, and early stopping"""
    patience: Whole = Field(0, ge=0)
    """stop after so many validations in a row without improvement; 0 never stops early"""
    precision: Literal["fp32", "bf16", "fp16", "auto"] = "fp32"
    """numbers that matrices are multiplied in: fp32; bf16; fp16, for GPUs, with a scaled loss; auto: bf16 on a GPU that has it"""
    compile: bool = False
    """compile the encoder and the decoder (torch.compile) for training: transformers alone; the first updates take minutes"""
    shard: bool = False
    """of several processes each keeps a part of the weights and of what the optimiser remembers (FSDP2), not all of them"""
    trackers: list[Literal["wandb", "mlflow"]] = []
    """services that are told what is logged, beside TensorBoard's files: wandb, mlflow; they must be installed"""
    average: str = "none"
    """the weights that are kept: of one step (none), their moving average (ema), or the mean of those at the last or the best N
    validations (last-N, best-N, such as best-5)"""
    ema_decay: Real = Field(0.999, gt=0, lt=1)
    """ema: how much of it stays at each update"""

    @model_validator(mode="before")
    @classmethod
    def _one_is_a_list(cls, values: Any) -> Any:
        if isinstance(values, dict):
            values = {
                name: [value] if name in ("freeze", "trackers") and isinstance(value, str) else value
                for name, value in values.items()
            }
        return values

    @field_validator("average")
    @classmethod
    def _average_is_known(cls, value: str) -> str:
        if not re.fullmatch(r"none|ema|(last|best)-([2-9]|[1-9][0-9]+)", value):
            raise ValueError("none, ema, last-N or best-N with N from 2 on is wanted, such as last-5")
        return value

    @model_validator(mode="after")
    def _averaged_once(self) -> TrainingSettings:
        if self.optimizer == "schedule-free":
            if self.schedule != "constant":
                raise ValueError(f"optimizer: schedule-free needs no schedule: {self.schedule}, but constant, with warmup_steps")
            if self.average != "none":
                raise ValueError(f"optimizer: schedule-free averages by itself: average: {self.average} would be a second one")
        return self

    @model_validator(mode="after")
    def _weights_begin_once(self) -> TrainingSettings:
        for name, value in (("source_vectors", self.source_vectors), ("target_vectors", self.target_vectors)):
            if self.from_ is not None and value is not None:
                raise ValueError(f"from and {name}: embeddings start from that run, or from word vectors")
        return self

    @model_validator(mode="after")
    def _sharded_as_written(self) -> TrainingSettings:
        if self.shard and self.compile:
            raise ValueError("shard and compile: weights that come and go cannot be compiled against; one of both")
        return self

    @model_validator(mode="after")
    def _one_bound(self) -> TrainingSettings:
        bounds = {"steps": self.steps, "epochs": self.epochs, "target_tokens": self.target_tokens, "for": self.for_}
        given = [name for name, value in bounds.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"one of steps, epochs, target_tokens and for bounds a run, not {' and '.join(given)}")
        return self

    @property
    def snapshots(self) -> tuple[Literal["last", "best"], int] | None:
        """Of which validations, and of how many, the weights are kept for their mean; None for another average."""
        kind, _, number = self.average.partition("-")
        return None if not number else ("best" if kind == "best" else "last", int(number))

    @property
    def bounded(self) -> bool:
        """Whether something but early stopping ends a run."""
        return not (self.steps is None and self.epochs is None and self.target_tokens is None and self.for_ is None)

    @property
    def ends(self) -> bool:
        """Whether the schedule falls to zero at the end of the run."""
        return self.schedule in ("linear", "cosine")
