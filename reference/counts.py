"""The counts: how many patches each image of an item has."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from reference.errors import CountTypeError, MissingCountsError, NegativeCountError

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def read_counts(raw: Any) -> tuple[int, ...]:
    """Read `num_patches` in any of its accepted forms (NP-03 to NP-06, NP-08).

    Args:
        raw: an int; a list or tuple of ints and 0-d integer tensors; an integer tensor of any
            rank, read row-major; a NumPy integer or integer array. An empty float tensor, which
            `torch.tensor([])` makes, is no counts.

    Raises:
        MissingCountsError: `raw` is None.
        CountTypeError: a value is not an integer; bools count as not.
        NegativeCountError: a value is negative.
    """
    if raw is None:
        raise MissingCountsError
    counts = tuple(_values(raw))
    for count in counts:
        if count < 0:
            raise NegativeCountError(f"num_patches has the negative count {count}")
    return counts


def _values(raw: Any) -> list[int]:
    if isinstance(raw, torch.Tensor):
        return _tensor_values(raw)
    if isinstance(raw, np.ndarray):
        if raw.size and not np.issubdtype(raw.dtype, np.integer):
            raise CountTypeError(f"num_patches is an array of {raw.dtype}; counts are integers")
        return [int(value) for value in raw.reshape(-1)]
    if isinstance(raw, (list, tuple)):
        return [_single(value) for value in raw]
    return [_single(raw)]


def _tensor_values(raw: torch.Tensor) -> list[int]:
    if raw.numel() and raw.dtype not in _INTEGERS:
        raise CountTypeError(f"num_patches is a tensor of {raw.dtype}; counts are integers")
    return [int(value) for value in raw.reshape(-1).tolist()]


def _single(value: Any) -> int:
    if isinstance(value, torch.Tensor) and value.dim() == 0:
        return _tensor_values(value)[0]
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise CountTypeError(
        f"num_patches holds {value!r} ({type(value).__name__}); counts are integers"
    )
