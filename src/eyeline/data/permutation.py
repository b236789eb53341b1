"""A random order of very many things without a list of them. Knows whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

ROUNDS = 6  # four suffice in theory (Luby and Rackoff 1988); an even number, so that the halves end as wide as they began


def permuted(places: npt.ArrayLike, size: int, key: Sequence[int]) -> Indices:
    """Where a random permutation of 0 … size − 1 has what stands at `places`: [n] to [n], in memory that grows with n alone.

    A Feistel network over the least power of two that holds `size`, its halves as unequal as they must be; what it sends beyond
    `size` is sent on until it falls inside (cycle walking, Black and Rogaway 2002), fewer than twice on average.

    Args:
        key: whole numbers, such as seed and epoch; each another permutation.
    """
    assert size >= 1
    keys = np.random.SeedSequence(list(key)).generate_state(ROUNDS, np.uint64).astype(np.uint64)
    bits = max(2, (size - 1).bit_length())
    found = np.asarray(places).astype(np.uint64)
    outside = np.arange(len(found))
    while len(outside):
        found[outside] = _network(found[outside], bits, keys)
        outside = outside[found[outside] >= size]
    return found.astype(np.int64)


def _network(values: npt.NDArray[np.uint64], bits: int, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One to one on the numbers of `bits` bits."""
    low_bits = bits // 2
    high_bits = bits - low_bits
    high, low = values >> np.uint64(low_bits), values & _ones(low_bits)
    for key in keys:
        high, low = low, high ^ (_mixed(low ^ key) & _ones(high_bits))
        high_bits, low_bits = low_bits, high_bits
    return (high << np.uint64(low_bits)) | low


def _ones(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each bit that goes in can turn each that comes out: the finaliser of SplitMix64 (Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
