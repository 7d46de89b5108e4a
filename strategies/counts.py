"""Counts: how many patches each image has, and the forms in which `num_patches` arrives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

INTEGER_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

Form = Callable[[Sequence[int]], Any]


@functools.cache
def counts(
    *, images: tuple[int, int] = (1, 3), patches: tuple[int, int] = (0, 2), total: int = 0
) -> st.SearchStrategy[tuple[int, ...]]:
    """Counts of one request.

    Args:
        images: the least and the most images.
        patches: the least and the most patches of one image.
        total: the least sum of all counts.
    """
    drawn = st.lists(st.integers(*patches), min_size=images[0], max_size=images[1])
    return drawn.filter(lambda found: sum(found) >= total).map(tuple)


def scalar_forms() -> st.SearchStrategy[Form]:
    """Forms of the count of a single image as a bare int (NP-03)."""
    return st.just(_int)


def list_forms() -> st.SearchStrategy[Form]:
    """Lists and tuples of ints, of 0-d tensors, and of both (NP-04)."""
    return tuple_forms() | list_of_tensors_forms() | mixed_forms() | st.just(list)


def tuple_forms() -> st.SearchStrategy[Form]:
    """A tuple of ints."""
    return st.just(tuple)


def list_of_tensors_forms() -> st.SearchStrategy[Form]:
    """Lists and tuples of 0-d tensors."""
    return st.sampled_from((_list_of_tensors, _tuple_of_tensors))


def mixed_forms() -> st.SearchStrategy[Form]:
    """A list of ints and 0-d tensors."""
    return st.just(_mixed_list)


def tensor_forms(
    *, shape: str = "flat", dtypes: Sequence[torch.dtype] = (torch.int64,)
) -> st.SearchStrategy[Form]:
    """Integer tensors (NP-05, NP-06).

    Args:
        shape: `scalar` for `()`, which takes a single image, `flat` for `(k,)`, `row` for
            `(1, k)`, `column` for `(k, 1)`, or `square` for `(2, 2)`, which takes four images.
        dtypes: among which to draw.
    """
    return st.sampled_from([TensorForm(shape, dtype) for dtype in dtypes])


def numpy_forms() -> st.SearchStrategy[Form]:
    """NumPy integer arrays, and lists of NumPy integers (NP-08)."""
    return st.sampled_from((_array, _list_of_numpy))


def _int(values: Sequence[int]) -> int:
    (value,) = values
    return value


def _list_of_tensors(values: Sequence[int]) -> list[Any]:
    return [torch.tensor(value) for value in values]


def _tuple_of_tensors(values: Sequence[int]) -> tuple[Any, ...]:
    return tuple(_list_of_tensors(values))


def _mixed_list(values: Sequence[int]) -> list[Any]:
    return [torch.tensor(v) if index % 2 == 0 else v for index, v in enumerate(values)]


def _array(values: Sequence[int]) -> Any:
    return np.asarray(values, dtype=np.int64)


def _list_of_numpy(values: Sequence[int]) -> list[Any]:
    return [np.int32(value) for value in values]


class TensorForm:
    """Counts as an integer tensor of some shape, see `tensor_forms`."""

    def __init__(self, shape: str = "flat", dtype: torch.dtype = torch.int64) -> None:
        self.shape, self.dtype = shape, dtype

    def __call__(self, values: Sequence[int]) -> torch.Tensor:
        """Write counts in this form."""
        shapes = {"scalar": (), "flat": (-1,), "row": (1, -1), "column": (-1, 1), "square": (2, 2)}
        return torch.tensor(list(values), dtype=self.dtype).reshape(shapes[self.shape])

    def __repr__(self) -> str:
        return f"tensor({self.shape}, {self.dtype})"
