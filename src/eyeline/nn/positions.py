"""How order is told: added to what is embedded, or inside self-attention. Knows positions, counted from 0; not layers.

Added: `Sinusoidal`, `LearnedPositions`, `NoPositions`. Inside: `Rotary`, `Alibi`, `Unordered`. A model has one of each kind,
and at most one of them tells anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

import torch
from torch import Tensor, nn

from eyeline.errors import ConfigError

Start = int | Tensor  # where the first of T positions stands: in all rows alike, or [R] long on the CPU
KEPT = 1024  # positions whose sinusoids are kept
BASE = 10000.0  # the longest wavelength is 2π·BASE positions (Vaswani et al. 2017, section 3.5)


def wavelengths(size: int, like: Tensor) -> Tensor:
    """[⌈size/2⌉]: 1 / 10000^(2i/size), the angle that pair i turns by from one position to the next, in fp32 or finer."""
    kind = torch.promote_types(like.dtype, torch.float32)
    return BASE ** (-torch.arange(0, size, 2, device=like.device, dtype=kind) / size)


class Positions(nn.Module, ABC):
    """What is added to embedded symbols."""

    @abstractmethod
    def forward(self, embedded: Tensor, start: Start = 0, mask: Tensor | None = None) -> Tensor:
        """[R, T, D] from `embedded` [R, T, D], whose first symbol stands at position `start`; `mask` [R, T] True = hidden."""


class NoPositions(Positions):
    """Nothing is added: order is told inside attention, or not at all."""

    def forward(self, embedded: Tensor, start: Start = 0, mask: Tensor | None = None) -> Tensor:
        return embedded


class Sinusoidal(Positions):
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, embedded: Tensor, start: Start = 0, mask: Tensor | None = None) -> Tensor:
        length = embedded.shape[1]
        if isinstance(start, int):
            return embedded + self._waves(start, start + length, embedded)
        places, last = _places(embedded, start)
        return embedded + self._waves(0, last, embedded)[places]

    def _waves(self, first: int, last: int, like: Tensor) -> Tensor:
        """[P, D] what is added at each position from `first` to before `last`. Up to KEPT a step does not make them anew."""
        if last > KEPT or torch.compiler.is_compiling():
            return _waves(self.size, first, last, like.device, like.dtype)
        return _kept_waves(self.size, like.device, like.dtype)[first:last]


def _waves(size: int, first: int, last: int, device: torch.device, kind: torch.dtype) -> Tensor:
    """[P, size] sinusoids of angles in fp32 or finer."""
    turns = wavelengths(size, torch.empty(0, device=device, dtype=kind))
    angles = torch.arange(first, last, device=device).to(turns.dtype)[:, None] * turns  # [P, ⌈D/2⌉]
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size].to(kind)


@lru_cache(maxsize=8)
def _kept_waves(size: int, device: torch.device, kind: torch.dtype) -> Tensor:
    with torch.inference_mode(False):  # they may be wanted in training next
        return _waves(size, 0, KEPT, device, kind)


class LearnedPositions(Positions):
    """A table of vectors, one a position, drawn like embeddings that are scaled: N(0, 1).

    Raises, when called:
        ConfigError: a position beyond the table that is not hidden.
    """

    def __init__(self, max_positions: int, size: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_positions, size).normal_())

    def forward(self, embedded: Tensor, start: Start = 0, mask: Tensor | None = None) -> Tensor:
        (places, last), most = _places(embedded, start), len(self.table)
        if last > most:
            longest = last if mask is None else last - embedded.shape[1] + int((~mask).sum(1).max())
            if longest > most:
                raise ConfigError(
                    f"an input of {longest} symbols is longer than the table of positions",
                    f"model.max_positions={most}",
                    "train with a larger table, shorten the input, or choose positions without a table, such as sinusoidal",
                )
        return embedded + self.table[places.clamp(max=most - 1)]  # beyond the table all is hidden


def _places(embedded: Tensor, start: Start) -> tuple[Tensor, int]:
    """Where the T positions of `embedded` [R, T, D] stand, [T] or [R, T], and the first place behind all of them."""
    length = embedded.shape[1]
    if isinstance(start, int):
        return torch.arange(start, start + length, device=embedded.device), start + length
    return (start[:, None] + torch.arange(length)).to(embedded.device), int(start.max()) + length


class Order(nn.Module, ABC):
    """What a self-attention knows of order."""

    @abstractmethod
    def turn(self, vectors: Tensor, places: Tensor) -> Tensor:
        """Queries or keys [..., T, E] made to tell their positions `places`, [T] or [R, 1, T]."""

    @abstractmethod
    def bias(self, queries: Tensor, keys: Tensor, kind: torch.dtype) -> Tensor | None:
        """[H, T, S] of type `kind`, added to the scores of queries at positions [T] and keys at positions [S]; None: nothing."""


class Unordered(Order):
    """Attention over a set: order must come from what is added to the symbols."""

    def turn(self, vectors: Tensor, places: Tensor) -> Tensor:
        return vectors

    def bias(self, queries: Tensor, keys: Tensor, kind: torch.dtype) -> Tensor | None:
        return None


class Rotary(Order):
    """Each pair of numbers of a query or key is turned by its position times an angle (Su et al. 2021, section 3.2.2).

    The score of two positions then depends on their distance alone.

    Args:
        width: E, numbers in a head.

    Raises:
        ConfigError: an odd width has no pairs.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ConfigError(
                f"rotary positions turn pairs of numbers, and a head of width {width} has one without a partner",
                "model.positions=rotary",
                "make model.size / model.heads even",
            )
        self.width = width

    def turn(self, vectors: Tensor, places: Tensor) -> Tensor:
        turns = wavelengths(self.width, vectors)
        angles = places.to(turns.dtype)[..., None] * turns  # [T, E/2], or for each row
        sin, cos = angles.sin().to(vectors.dtype), angles.cos().to(vectors.dtype)
        even, odd = vectors[..., 0::2], vectors[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def bias(self, queries: Tensor, keys: Tensor, kind: torch.dtype) -> Tensor | None:
        return None


class Alibi(Order):
    """Scores fall with distance: head h of H adds -2^(-8h/H) |i - j|, h from 1 (Press et al. 2022, section 3).

    The paper has decoders only; here an encoder's heads fall off alike to both sides.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def turn(self, vectors: Tensor, places: Tensor) -> Tensor:
        return vectors

    def bias(self, queries: Tensor, keys: Tensor, kind: torch.dtype) -> Tensor | None:
        fine = torch.promote_types(kind, torch.float32)
        slopes = 2.0 ** (-8.0 * torch.arange(1, self.heads + 1, device=queries.device, dtype=fine) / self.heads)
        distance = (queries[:, None] - keys).abs()  # [T, S]
        return (-slopes[:, None, None] * distance).to(kind)
