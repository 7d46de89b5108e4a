"""A record: what one check found for one family and dtype."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "known", "empty", "refused", "unbuildable", "abandoned"]

Claim = Literal["", "fixed", "different"]


@dataclass(frozen=True)
class Record:
    """What a check found.

    Attributes:
        check: its name.
        sentence: what it holds.
        clauses: which it covers.
        family: under test.
        dtype: under test, such as `float32`.
        after: clauses whose failure explains wrong values in this check alone.
        status: `empty` if every drawn case was left out, `refused` if the implementation refuses
            a configuration that no checkpoint has, `unbuildable` if no encoder can be built,
            `abandoned` if its process ended too often for the run to go on.
        cases: judged.
        left_out: drawn, but saying nothing because the reference overflows in the dtype.
        units: the largest error of those that passed, in units of noise.
        error: of the failing case, in units of noise; 0 where that is not the question.
        expected: in the failing case.
        came: in the failing case.
        where: the failing case differs.
        value: whether wrong values, not an error or a shape, made it fail.
        kind: of the failure: the type of an exception, `values` or `behaviour`.
        printed: the last lines before the implementation's process ended, if that is what failed.
        case: the failing one on one line.
        digest: of the failing case.
        file: where the failing case is saved.
        known: what is wrong, if it is a known failure.
        witness: the saved witness that was replayed, by its name; empty for a search.
        claim: what became of what is said to be known: `fixed` if its witness passes, `different`
            if that fails in another way than it was seen to; else empty.
        notes: of the cases that passed.
        seconds: spent in all, and inside the implementation's calls and the oracle's.
        encoders: the part of `seconds` inside encoders.
    """

    check: str
    sentence: str
    clauses: tuple[str, ...]
    family: str
    dtype: str
    status: Status
    after: tuple[str, ...] = ()
    cases: int = 0
    left_out: int = 0
    units: float = 0.0
    error: float = 0.0
    expected: str = ""
    came: str = ""
    where: str = ""
    value: bool = False
    kind: str = ""
    printed: str = ""
    case: str = ""
    digest: str = ""
    file: str = ""
    known: str = ""
    witness: str = ""
    claim: Claim = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    encoders: float = 0.0

    @property
    def stateful(self) -> bool:
        """Whether the failure shows only after earlier calls on the same encoder."""
        return "SE-08" in self.after

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Record:
        """From JSON values."""
        frozen: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**frozen)
