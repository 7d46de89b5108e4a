"""The judge: whether a result is right within noise.

The limits stand in `limits.toml`, with how and on what they were measured: no right encoder of the
catalogue of harmless differences comes near them, every planted fault of arithmetic passes them in
float32.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Any

import torch
from torch import Tensor

from conformance.oracle import Truth
from conformance.outcome import Crashed, Raised, TimedOut


@dataclass(frozen=True)
class Limits:
    """How many units of noise a right encoder may be off by.

    Attributes:
        row: the RMS error of a row.
        element: the error of a single element.
        highest_row: the highest RMS error seen of a right encoder when the limit was set.
        highest_element: the highest error of one element seen then.
    """

    row: float
    element: float
    highest_row: float
    highest_element: float


@functools.cache
def limits(dtype: torch.dtype) -> Limits:
    """The limits of a dtype, from `limits.toml`."""
    table = limits_table()[str(dtype).removeprefix("torch.")]
    return Limits(**table)


@functools.cache
def limits_table() -> dict[str, Any]:
    """The whole table, with how and on what it was measured."""
    text = resources.files("conformance").joinpath("limits.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True)
class Verdict:
    """What the judge says.

    Attributes:
        passed: whether the property holds.
        units: the largest error seen, in units of noise; 0 where nothing was measured.
        expected: what should have come.
        came: what came.
        where: which image and rows differ, or which input fails; empty if the question does not
            arise.
        excess: how far beyond the limits a wrong result is; above 1 fails, infinite where it is not
            a matter of degree. 0 where an exception is the reason of a failure.
        note: something to report whether or not it passed.
        raised: the type of the exception, or `Crashed` or `TimedOut`, that is the reason of a
            failure; empty if there is none.
    """

    passed: bool
    units: float = 0.0
    expected: str = ""
    came: str = ""
    where: str = ""
    excess: float = 0.0
    note: str = ""
    raised: str = ""

    @property
    def kind(self) -> str:
        """What sort of failure it is: an exception's type, `values` or `behaviour`."""
        return "" if self.passed else self.raised or ("values" if self.excess else "behaviour")


PASSED = Verdict(True)


def failed(expected: str, came: object) -> Verdict:
    """A failure that is not about values."""
    return Verdict(False, expected=expected, came=str(came), raised=_raised(came))


def wrong(expected: str, came: object) -> Verdict:
    """A failure of a result that came, but is not the right one."""
    return Verdict(False, expected=expected, came=str(came), excess=math.inf)


def _raised(came: object) -> str:
    if isinstance(came, Raised):
        return came.type
    return type(came).__name__ if isinstance(came, (Crashed, TimedOut)) else ""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The first failure, or else a pass with the largest error; all notes are kept.

    What comes after the first failure is not asked for.
    """
    units = 0.0
    notes: dict[str, None] = {}
    for verdict in verdicts:
        if not verdict.passed:
            return verdict
        units = max(units, verdict.units)
        if verdict.note:
            notes[verdict.note] = None
    return Verdict(True, units, note="; ".join(notes))


@dataclass(frozen=True)
class Distance:
    """How far two results are apart.

    Attributes:
        row_units: `(rows,)`, the RMS error of each row in units of noise.
        element_units: `(rows,)`, the largest error of an element of each row.
        limits: of the dtype, for as many noisy sides as there are.
    """

    row_units: Tensor
    element_units: Tensor
    limits: Limits

    @property
    def excess(self) -> Tensor:
        """`(rows,)`, above 1 where a row is too far off."""
        by_row = self.row_units / self.limits.row
        return torch.maximum(by_row, self.element_units / self.limits.element)

    @property
    def units(self) -> float:
        """The largest error of a row."""
        return float(self.row_units.max()) if self.row_units.numel() else 0.0

    @property
    def close(self) -> bool:
        """Whether every row is within the limits."""
        return bool((self.excess <= 1).all())


def distance(
    actual: Tensor, expected: Tensor, unit: Tensor, dtype: torch.dtype, *, sides: int = 1
) -> Distance:
    """Measure how far a result is from another, row by row, in float64.

    A value that is not finite is infinitely far from a number.

    Args:
        actual: `(rows, D)`.
        expected: `(rows, D)`.
        unit: `(rows,)`, the RMS error that is one unit of noise, as of `Truth`.
        dtype: under test.
        sides: 1 if `expected` is exact, 2 if both come from the implementation.
    """
    error = (actual.double() - expected.double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    unit = unit.clamp(min=torch.finfo(torch.float64).tiny)
    found = limits(dtype)
    allowed = Limits(
        found.row * sides, found.element * sides, found.highest_row, found.highest_element
    )
    return Distance(error.square().mean(dim=-1).sqrt() / unit, error.amax(dim=-1) / unit, allowed)


def loud(found: Distance, truth: Truth) -> bool:
    """Whether an error is large enough for its unit to be worth measuring on the ensemble."""
    return not truth.whole and (found.units > 2 or not found.close)
