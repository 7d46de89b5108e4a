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
    *, ranks: Sequence[int] = (1, 2), dtypes: Sequence[torch.dtype] = (torch.int64,)
) -> st.SearchStrategy[Form]:
    """Integer tensors of some ranks and dtypes (NP-05, NP-06); rank 0 needs a single image."""

    def make(rank: int, dtype: torch.dtype, column: bool) -> Form:
        return _TensorForm(rank, dtype, column)

    return st.builds(make, st.sampled_from(ranks), st.sampled_from(dtypes), st.booleans())


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


class _TensorForm:
    """A tensor of some rank: `()`, `(k,)`, `(1, k)` or `(k, 1)`."""

    def __init__(self, rank: int, dtype: torch.dtype, column: bool) -> None:
        self.rank, self.dtype, self.column = rank, dtype, column

    def __call__(self, values: Sequence[int]) -> torch.Tensor:
        flat = torch.tensor(list(values), dtype=self.dtype)
        if self.rank == 0:
            return flat.reshape(())
        if self.rank == 1:
            return flat
        return flat.reshape(-1, 1) if self.column else flat.reshape(1, -1)

    def __repr__(self) -> str:
        return f"tensor(rank {self.rank}, {self.dtype})"
