"""Faults in how the counts are read."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise, with_data

COUNTS, PATCHES = "num_patches", "patch_pixel_values"


class AbsentIsKeyError(Stepwise):
    """Absent counts are a KeyError; None is refused as documented."""

    def counts(self, data: dict[str, Any]) -> Sequence[int]:
        return super().counts({COUNTS: data[COUNTS]})


class MissingIsTypeError(Stepwise):
    """Counts are iterated, whether or not they are there."""

    def written(self, raw: Any) -> Any:
        if raw is None:
            raise TypeError("'NoneType' object is not iterable")
        return raw


class MissingIsThumbnailsOnly(Stepwise):
    """Without counts, the patches are dropped in silence."""

    def received(self, item: Any) -> Any:
        if item.model_specific_data.get(COUNTS) is not None:
            return item
        return with_data(item, **{COUNTS: [0] * len(item.feature), PATCHES: None})


class MissingIsSharedOut(Stepwise):
    """Without counts, all patches are the last image's."""

    def received(self, item: Any) -> Any:
        data = item.model_specific_data
        if data.get(COUNTS) is not None:
            return item
        patches = data.get(PATCHES)
        rows = 0 if patches is None else len(patches)
        return with_data(item, **{COUNTS: [0] * (len(item.feature) - 1) + [rows]})


class NoneIsZero(Stepwise):
    """Counts that are None are no patches; absent ones are refused as documented."""

    def received(self, item: Any) -> Any:
        if COUNTS in item.model_specific_data and item.model_specific_data[COUNTS] is None:
            return with_data(item, **{COUNTS: [0] * len(item.feature), PATCHES: None})
        return item


class NoneIsTypeError(Stepwise):
    """Only absent counts are looked for; None goes to `int`."""

    def counts(self, data: dict[str, Any]) -> Sequence[int]:
        if COUNTS in data and data[COUNTS] is None:
            raise TypeError("int() argument must be a string or a real number, not 'NoneType'")
        return super().counts(data)


class IntIsTypeError(Stepwise):
    """An int is iterated."""

    def written(self, raw: Any) -> Any:
        return iter(raw) if isinstance(raw, int) else raw


class ZeroIsMissing(Stepwise):
    """Counts are missing if they are falsy, which the int 0 is."""

    def written(self, raw: Any) -> Any:
        return None if isinstance(raw, int) and not raw else raw


class IntIsManyImages(Stepwise):
    """An int n means n images of one patch each."""

    def written(self, raw: Any) -> Any:
        return [1] * raw if isinstance(raw, int) else raw


class TupleIsTypeError(Stepwise):
    """Of the sequences only a list is known."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, tuple):
            raise TypeError("unsupported type of num_patches: tuple")
        return raw


class TensorsInListRefused(Stepwise):
    """The entries of a list must be ints."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, (list, tuple)) and any(isinstance(entry, Tensor) for entry in raw):
            raise TypeError("num_patches must hold ints")
        return raw


class TensorsInListJoined(Stepwise):
    """A list whose first entry is a tensor is stacked."""

    def written(self, raw: Any) -> Any:
        stacks = isinstance(raw, (list, tuple)) and raw and isinstance(raw[0], Tensor)
        return torch.stack(list(raw)) if stacks else raw


class ScalarTensorIterated(Stepwise):
    """A 0-d tensor is iterated."""

    def written(self, raw: Any) -> Any:
        return list(raw) if isinstance(raw, Tensor) and raw.dim() == 0 else raw


class RowsTestedForTruth(Stepwise):
    """A tensor is iterated and each entry compared with zero, which rows have no answer to."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor) and raw.dim() == 2:
            return [int(entry) if entry > 0 else 0 for entry in raw]
        return raw


class RankMustBeOne(Stepwise):
    """A tensor of another rank than 1 is refused."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor) and raw.dim() != 1:
            raise ValueError(f"num_patches has rank {raw.dim()}, expected 1")
        return raw


class FirstRowRead(Stepwise):
    """Of a 2-d tensor the first row is read."""

    def written(self, raw: Any) -> Any:
        return raw[0] if isinstance(raw, Tensor) and raw.dim() == 2 else raw


class ColumnMajor(Stepwise):
    """A 2-d tensor is read column by column."""

    def written(self, raw: Any) -> Any:
        return raw.T if isinstance(raw, Tensor) and raw.dim() == 2 else raw


class WideIntegersOnly(Stepwise):
    """Counts go to an operator that takes int32 and int64 alone."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor) and raw.dim() == 1 and not raw.is_floating_point():
            torch.repeat_interleave(torch.arange(len(raw)), raw.cpu().relu())
        return raw


class UnsignedRefused(Stepwise):
    """Counts must be of a signed dtype."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor) and raw.dtype == torch.uint8:
            raise TypeError("num_patches must be a signed integer tensor")
        return raw


class MemoryReadAsInt64(Stepwise):
    """The memory of a tensor of counts is read as int64, whatever it holds."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor) and raw.dtype in (torch.int32, torch.int16, torch.int8):
            return np.frombuffer(raw.cpu().contiguous().numpy().tobytes(), np.int64)
        return raw


class ArrayIsScalar(Stepwise):
    """What is neither a tensor nor a sequence goes to `int`, arrays of several values too."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, np.ndarray):
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return raw


class NumPyEntriesRefused(Stepwise):
    """The entries of a list must be ints or tensors."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, list) and any(isinstance(entry, np.integer) for entry in raw):
            raise TypeError("num_patches must hold ints")
        return raw


class AnythingToInt(Stepwise):
    """Whatever `int` takes is a count: strings, bools, fractions."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor):
            return raw.long()
        return [int(entry) for entry in raw] if isinstance(raw, (list, tuple)) else raw


class BoolsAreInts(Stepwise):
    """True is one patch, since a bool is an int."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, Tensor):
            return raw.int() if raw.dtype == torch.bool else raw
        if isinstance(raw, (list, tuple)):
            return [int(entry) if isinstance(entry, bool) else entry for entry in raw]
        return raw


class FractionsTruncated(Stepwise):
    """Fractions are cut to whole numbers."""

    def written(self, raw: Any) -> Any:
        whole = isinstance(raw, Tensor) and raw.is_floating_point()
        if isinstance(raw, (list, tuple)) and any(isinstance(entry, float) for entry in raw):
            raw, whole = torch.tensor(raw), True
        return raw.long() if whole and bool(raw.isfinite().all()) else raw


class DigitsAreRead(Stepwise):
    """Strings of digits are counts."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, list):
            return [int(entry) if isinstance(entry, str) else entry for entry in raw]
        return raw


class NaNIsZero(Stepwise):
    """NaN is no patches."""

    def written(self, raw: Any) -> Any:
        if isinstance(raw, list):
            return [0 if isinstance(entry, float) and entry != entry else entry for entry in raw]
        return raw


class MustBeIterable(Stepwise):
    """Counts are iterated and compared with zero, in whatever form they come."""

    def written(self, raw: Any) -> Any:
        return [entry if entry > 0 else 0 for entry in raw]


class MustBeVector(Stepwise):
    """Counts are a list or a 1-d tensor; anything else fails an assertion or a rank check."""

    def written(self, raw: Any) -> Any:
        assert isinstance(raw, (Tensor, list))
        if isinstance(raw, Tensor) and raw.dim() != 1:
            raise ValueError(f"num_patches has rank {raw.dim()}, expected 1")
        return raw


_OLD_SGLANG = "sglang <= 0.5.13 step3_vl_10b.py, step3p7.py"
_SGLANG = "sglang >= 0.5.14 step3_vl_10b.py"

_missing = functools.partial(Fault, kind="missing counts")
_form = functools.partial(Fault, kind="scalar counts")

FAULTS = (
    _missing(name="counts: absent is a KeyError", clause="NP-01", encoder=AbsentIsKeyError),
    _missing(
        name="counts: missing is a TypeError",
        clause="NP-01",
        encoder=MissingIsTypeError,
        source=_OLD_SGLANG,
    ),
    _missing(
        name="counts: missing is thumbnails only",
        clause="NP-01",
        encoder=MissingIsThumbnailsOnly,
        source="transformers 5.24 step3p7, mlx-vlm 0.7.10",
    ),
    _missing(
        name="counts: missing is all for the last image", clause="NP-01", encoder=MissingIsSharedOut
    ),
    _missing(
        name="counts: None is zero", clause="NP-02", encoder=NoneIsZero, source="mlx-vlm 0.7.10"
    ),
    _missing(name="counts: None is a TypeError", clause="NP-02", encoder=NoneIsTypeError),
    _form(
        name="counts: an int is not iterable",
        clause="NP-03",
        encoder=IntIsTypeError,
        source="transformers 5.24 step3p7",
    ),
    _form(name="counts: zero is taken for missing", clause="NP-03", encoder=ZeroIsMissing),
    _form(name="counts: an int is many images", clause="NP-03", encoder=IntIsManyImages),
    _form(name="counts: a tuple is refused", clause="NP-04", encoder=TupleIsTypeError),
    _form(
        name="counts: tensors in a list are refused", clause="NP-04", encoder=TensorsInListRefused
    ),
    _form(
        name="counts: ints among tensors are refused", clause="NP-04", encoder=TensorsInListJoined
    ),
    _form(
        name="counts: a 0-d tensor is iterated",
        clause="NP-05",
        encoder=ScalarTensorIterated,
        source=_OLD_SGLANG,
    ),
    _form(
        name="counts: rows of a 2-d tensor are compared with zero",
        clause="NP-05",
        encoder=RowsTestedForTruth,
        source=_OLD_SGLANG,
    ),
    _form(
        name="counts: the rank must be 1",
        clause="NP-05",
        encoder=RankMustBeOne,
        source="vLLM 0.12 to 0.33",
    ),
    _form(name="counts: the first row alone is read", clause="NP-05", encoder=FirstRowRead),
    _form(name="counts: read column by column", clause="NP-05", encoder=ColumnMajor),
    _form(name="counts: int32 and int64 alone", clause="NP-06", encoder=WideIntegersOnly),
    _form(name="counts: uint8 is refused", clause="NP-06", encoder=UnsignedRefused),
    _form(name="counts: memory read as int64", clause="NP-06", encoder=MemoryReadAsInt64),
    _form(
        name="counts: an array goes to int", clause="NP-08", encoder=ArrayIsScalar, source=_SGLANG
    ),
    _form(name="counts: NumPy entries are refused", clause="NP-08", encoder=NumPyEntriesRefused),
    _form(name="counts: whatever int takes", clause="NP-09", encoder=AnythingToInt, source=_SGLANG),
    _form(name="counts: bools are ints", clause="NP-09", encoder=BoolsAreInts),
    _form(name="counts: fractions are cut", clause="NP-09", encoder=FractionsTruncated),
    _form(name="counts: digits are read", clause="NP-09", encoder=DigitsAreRead),
    _form(name="counts: NaN is zero", clause="NP-09", encoder=NaNIsZero),
    _form(
        name="counts: must be iterable", clause="NP-03", encoder=MustBeIterable, source=_OLD_SGLANG
    ),
    _form(
        name="counts: must be a list or a 1-d tensor",
        clause="NP-03",
        encoder=MustBeVector,
        source="vLLM 0.32, 0.33",
    ),
)
