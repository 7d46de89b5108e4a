"""Malformed cases: a well-formed case with one fault, which has a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from reference import ImageItem
from strategies.case import Case
from strategies.cases import cases

Spoil = Callable[[ImageItem], ImageItem]


def malformed(*, faults: Sequence[str], **of_cases: Any) -> st.SearchStrategy[Case]:
    """Cases of a single item that is wrong in one way.

    Args:
        faults: names among which to draw, see `FAULTS`.
        **of_cases: passed to `strategies.cases`; each fault sets what it needs of them.

    Raises:
        ValueError: there is no such fault.
    """
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        raise ValueError(f"fault {unknown[0]!r} is none of {sorted(FAULTS)}")
    return st.one_of([_with_fault(fault, of_cases) for fault in faults])


def _with_fault(fault: str, of_cases: dict[str, Any]) -> st.SearchStrategy[Case]:
    needs, _ = FAULTS[fault]
    return cases(**{**of_cases, **needs}).map(lambda case: spoilt(case, fault))


def spoilt(case: Case, fault: str) -> Case:
    """A sound case with one fault in its first item."""
    _, spoil = FAULTS[fault]
    return case.replace(items=(spoil(case.items[0]), *case.items[1:]))


def _with(item: ImageItem, **data: Any) -> ImageItem:
    return ImageItem(item.feature, {**item.model_specific_data, **data})


def _without(item: ImageItem, name: str) -> ImageItem:
    data = {key: value for key, value in item.model_specific_data.items() if key != name}
    return ImageItem(item.feature, data)


def _counts(item: ImageItem) -> list[int]:
    return list(item.model_specific_data["num_patches"])


def _patches(item: ImageItem) -> Tensor:
    patches: Tensor = item.model_specific_data["patch_pixel_values"]
    return patches


def _counts_as(make: Callable[[list[int]], Any]) -> Spoil:
    return lambda item: _with(item, num_patches=make(_counts(item)))


def _patches_as(make: Callable[[Tensor], Any]) -> Spoil:
    return lambda item: _with(item, patch_pixel_values=make(_patches(item)))


def _feature_as(make: Callable[[Tensor], Tensor]) -> Spoil:
    return lambda item: ImageItem(make(item.feature), item.model_specific_data)


def _as_bools(counts: list[int]) -> list[bool]:
    return [count == 1 for count in counts]


def _negative(counts: list[int]) -> list[int]:
    """The last count becomes -1, and the first grows so that the sum stays."""
    return [counts[0] + counts[-1] + 1, *counts[1:-1], -1]


def _to_uint8(pixels: Tensor) -> Tensor:
    return ((pixels.float().clamp(-1, 1) + 1) * 127).to(torch.uint8)


_ONE_PATCH = {"images": (1, 2), "patches": (0, 1), "total": 1}
_SOME = {"images": (1, 3), "patches": (0, 2), "total": 1}
_SEVERAL = {"images": (1, 3), "patches": (0, 3), "total": 2}
_BARE = {"images": (1, 3), "patches": (0, 0)}
_BARE_PAIR = {"images": (2, 3), "patches": (0, 0)}
_PAIR = {"images": (2, 3), "patches": (0, 2), "total": 1}

# Each fault: what it needs of a sound case, and how it spoils the first item.
FAULTS: dict[str, tuple[dict[str, Any], Spoil]] = {
    "counts absent": (_BARE, lambda item: _without(item, "num_patches")),
    "counts absent beside patches": (_SOME, lambda item: _without(item, "num_patches")),
    "counts None": (_BARE, _counts_as(lambda _: None)),
    "counts None beside patches": (_SOME, _counts_as(lambda _: None)),
    "counts are bools": (_ONE_PATCH, _counts_as(_as_bools)),
    "counts are a bool tensor": (_ONE_PATCH, _counts_as(lambda c: torch.tensor(_as_bools(c)))),
    "counts are strings": (_SOME, _counts_as(lambda c: [str(count) for count in c])),
    "counts are fractions": (_SOME, _counts_as(lambda c: [count + 0.5 for count in c])),
    "counts are a tensor of fractions": (_SOME, _counts_as(lambda c: torch.tensor(c) + 0.5)),
    "counts are NaN": (_BARE, _counts_as(lambda c: [math.nan for _ in c])),
    "count negative": (_PAIR, _counts_as(_negative)),
    "fewer counts than thumbnails": (_BARE_PAIR, _counts_as(lambda c: c[:-1])),
    "more counts than thumbnails": (_SOME, _counts_as(lambda c: [*c, 0])),
    "patches absent": (_SOME, lambda item: _without(item, "patch_pixel_values")),
    "patches None": (_SOME, _patches_as(lambda _: None)),
    "patches of zero rows": (_SOME, _patches_as(lambda p: p[:0])),
    "a patch row too few": (_SEVERAL, _patches_as(lambda p: p[:-1])),
    "a patch row too many": (_SOME, _patches_as(lambda p: torch.cat([p, p[:1]]))),
    "feature of rank 3": (_BARE, _feature_as(lambda f: f[:, 0])),
    "feature of rank 5": (_BARE, _feature_as(lambda f: f[None])),
    "feature of one channel": (_BARE, _feature_as(lambda f: f[:, :1])),
    "feature of four channels": (_BARE, _feature_as(lambda f: torch.cat([f, f[:, :1]], dim=1))),
    "feature with channels last": (_BARE, _feature_as(lambda f: f.permute(0, 2, 3, 1))),
    "patches of rank 3": (_SOME, _patches_as(lambda p: p[:, 0])),
    "patches of one channel": (_SOME, _patches_as(lambda p: p[:, :1])),
    "integer feature": (_BARE, _feature_as(_to_uint8)),
    "integer patches": (_SOME, _patches_as(_to_uint8)),
}
