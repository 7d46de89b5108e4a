"""A check: one property over cases, and the clauses that it covers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from hypothesis import strategies as st

from conformance.contract import contract
from conformance.judge import Verdict
from conformance.trial import Trial
from reference import FAMILIES
from strategies import Case

Property = Callable[[Trial, Case], Verdict]
Given = Callable[..., st.SearchStrategy[Case]]


@dataclass(frozen=True)
class Check:
    """One property.

    Attributes:
        clauses: ids of what it covers.
        holds: judges one case.
        given: the strategy, called with `family` and `dtype`.
        effort: how many times a profile's examples it gets.
        after: clauses whose failure explains wrong values in this check alone.
        families: that it is about; a clause may have checks for some families only.
    """

    clauses: tuple[str, ...]
    holds: Property
    given: Given
    effort: int = 1
    after: tuple[str, ...] = ()
    families: tuple[str, ...] = FAMILIES

    def applies(self, family: str, interface: str, device: str) -> bool:
        """Whether there is anything to check, for a family, an interface and a device's type."""
        open_clauses = [
            clause
            for clause in self.clauses
            if not contract()[clause].inapplicable(family, interface, device)
        ]
        return family in self.families and bool(open_clauses)

    def covers(self, clause: str, family: str) -> bool:
        """Whether it is one of the checks of a clause in a family."""
        return clause in self.clauses and family in self.families

    def behind(self, *, stateful: bool) -> tuple[str, ...]:
        """Clauses whose failure explains wrong values of one failure of this check.

        Args:
            stateful: whether it fails only after earlier calls on the same encoder.
        """
        return (*self.after, "SE-08") if stateful else self.after

    @property
    def name(self) -> str:
        """The property's own name, unique among checks."""
        return self.holds.__name__

    @property
    def sentence(self) -> str:
        """What it holds, in one sentence."""
        return (self.holds.__doc__ or "").strip().splitlines()[0]

    def cases(self, family: str, dtype: torch.dtype) -> st.SearchStrategy[Case]:
        """The strategy for a family and a dtype."""
        return self.given(family=family, dtype=dtype)


def check(
    *clauses: str,
    given: Given,
    effort: int = 1,
    after: Sequence[str] = (),
    families: Sequence[str] = FAMILIES,
    **options: Any,
) -> Callable[[Property], Check]:
    """Make a property a check.

    Args:
        *clauses: ids of what it covers.
        given: a strategy that takes `family` and `dtype`.
        effort: how many times a profile's examples it gets.
        after: clauses whose failure explains wrong values in this check alone.
        families: that it is about.
        **options: passed to the strategy.

    Raises:
        ValueError: a clause is unknown.
    """
    for clause in (*clauses, *after):
        contract()[clause]

    def strategy(**where: Any) -> st.SearchStrategy[Case]:
        return given(**{**options, **where})

    return lambda found: Check(clauses, found, strategy, effort, tuple(after), tuple(families))


def checks_of(module: ModuleType) -> list[Check]:
    """The checks of one module, in order."""
    return [value for value in vars(module).values() if isinstance(value, Check)]


def all_checks() -> list[Check]:
    """Every check of the suite, those that take most cases last.

    Raises:
        ValueError: two checks have one name.
    """
    package = importlib.import_module("conformance.checks")
    found: dict[str, Check] = {}
    for entry in pkgutil.iter_modules(package.__path__, "conformance.checks."):
        module = importlib.import_module(entry.name)
        for value in checks_of(module):
            if found.setdefault(value.name, value) is not value:
                raise ValueError(f"two checks are named {value.name!r}")
    return in_order(found.values())


def in_order(checks: Iterable[Check]) -> list[Check]:
    """Checks in the order in which to make them: a fault should fall early."""
    return sorted(checks, key=lambda check: check.effort)
