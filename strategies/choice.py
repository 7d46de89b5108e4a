"""Choices that are drawn over and over, built once: building a strategy costs more than drawing."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


def among(options: tuple[T, ...]) -> st.SearchStrategy[T]:
    """One of some options; failures shrink towards the first."""
    return _sampled(options)


@functools.cache
def _sampled(options: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(options)


@functools.cache
def seeds(largest: int = 2**16) -> st.SearchStrategy[int]:
    """A seed from 0 on."""
    return st.integers(0, largest)
