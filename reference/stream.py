"""Numbers from a seed: the same on every machine and with every release of torch and NumPy.

Philox is a counter generator whose raw bits NumPy keeps stable; everything above the raw bits is
arithmetic on small integers, so it rounds nowhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import torch

_SIX_BITS = np.uint64(63)
_SHIFTS = [np.uint64(shift) for shift in (6, 12, 18)]
_HALF = np.uint64(24)

# The sum of four uniform integers in 0..63, less its mean: this is its standard deviation.
_DEVIATION = math.sqrt(4 * (64**2 - 1) / 12)


def raw_bits(seed: int, label: str, count: int) -> np.ndarray:
    """`count` uint64 of raw bits that depend on the seed and the label alone."""
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=16).digest()
    return np.random.Philox(key=int.from_bytes(digest, "little")).random_raw(count)


def bell(seed: int, label: str, shape: Sequence[int], deviation: float = 1.0) -> torch.Tensor:
    """Roughly normal float32 values that are exact in bfloat16 and float16.

    Each is an integer in -126..126 times a power of two, so it needs seven bits; values exact in
    every dtype keep a low-precision run from differing by its rounded input alone.

    Args:
        seed: any int.
        label: names the tensor, so that two tensors of one seed differ.
        shape: of the result.
        deviation: the standard deviation, met within a factor of sqrt(2).
    """
    count = math.prod(shape)
    bits = raw_bits(seed, label, -(-count // 2))
    integers = np.stack([_sum_of_four(bits), _sum_of_four(bits >> _HALF)], axis=1)
    integers = integers.reshape(-1)[:count].astype(np.int64) - 126
    scale = 2.0 ** round(math.log2(deviation / _DEVIATION))
    return torch.from_numpy(integers.astype(np.float32)).reshape(tuple(shape)) * scale


def _sum_of_four(bits: np.ndarray) -> np.ndarray:
    """The sum of the four lowest fields of six bits."""
    total = bits & _SIX_BITS
    for shift in _SHIFTS:
        total = total + ((bits >> shift) & _SIX_BITS)
    return total


def signs(seed: int, label: str, shape: Sequence[int]) -> torch.Tensor:
    """Float32 values that are 1 or -1."""
    count = math.prod(shape)
    bits = np.unpackbits(raw_bits(seed, label, -(-count // 64)).astype("<u8").view(np.uint8))
    return torch.from_numpy(bits[:count].astype(np.float32)).reshape(tuple(shape)) * 2 - 1


def spread(seed: int, label: str, shape: Sequence[int], low: int, high: int) -> torch.Tensor:
    """Float32 values k/64 with the integer k uniform in `low`..`high`."""
    count = math.prod(shape)
    bits = raw_bits(seed, label, count) >> np.uint64(32)
    integers = (bits % np.uint64(high - low + 1)).astype(np.int64) + low
    return torch.from_numpy(integers.astype(np.float32)).reshape(tuple(shape)) / 64
