"""Which failures explain which: gating by clause, after the run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from conformance.contract import contract


@dataclass(frozen=True)
class Failure:
    """A failed check, as far as gating looks at it.

    Attributes:
        clauses: that the check covers.
        value: whether wrong values, not an error or a shape, made it fail.
        after: clauses whose failure explains wrong values in this check alone.
    """

    clauses: tuple[str, ...]
    value: bool
    after: tuple[str, ...] = ()


def explained(failures: Iterable[Failure]) -> dict[str, tuple[str, ...]]:
    """The causes of every failed clause; empty for one that must be looked at itself.

    A clause is explained if each of its failed checks has wrong values and a prerequisite of the
    clause, or of the check, that failed. A check that is explained by its own prerequisite does
    not explain others.
    """
    failures = list(failures)
    first = _clauses(failure for failure in failures if not failure.after)
    plain = _clauses(failure for failure in failures if not first & set(failure.after))
    counted = [f for f in failures if not (f.value and plain & set(f.after))]
    failed = _clauses(counted)
    found: dict[str, tuple[str, ...]] = {}
    for clause in dict.fromkeys(clause for failure in failures for clause in failure.clauses):
        own = [failure for failure in failures if clause in failure.clauses]
        causes = [_causes(clause, failure, failed) for failure in own]
        found[clause] = causes[0] if all(causes) else ()
    return found


def _clauses(failures: Iterable[Failure]) -> set[str]:
    return {clause for failure in failures for clause in failure.clauses}


def _causes(clause: str, failure: Failure, failed: set[str]) -> tuple[str, ...]:
    if not failure.value:
        return ()
    own = tuple(cause for cause in failure.after if cause in failed)
    return own or contract().causes(clause, failed)
