"""The contract as data: one record a clause, read from `contract.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from reference import FAMILIES

Level = Literal["core", "strict", "extended"]

LEVELS: tuple[Level, ...] = ("core", "strict", "extended")


@dataclass(frozen=True)
class Clause:
    """One rule of the contract.

    Attributes:
        id: permanent, such as `LA-02`.
        level: `core`, `strict` or `extended`.
        title: a few words.
        rule: what must hold, in one sentence.
        since: the contract version that introduced it.
        families: to which it applies.
        interfaces: to which it applies.
        needs: `accelerator` if it can only be checked off the CPU, else None.
        prerequisites: clauses whose failure explains wrong values here.
    """

    id: str
    level: Level
    title: str
    rule: str
    since: str
    families: tuple[str, ...] = FAMILIES
    interfaces: tuple[str, ...] = ("items", "batch")
    needs: str | None = None
    prerequisites: tuple[str, ...] = ()

    def inapplicable(self, family: str, interface: str, device: str) -> str | None:
        """Why the clause cannot be checked there, None if it can."""
        if family not in self.families:
            return f"{family} has none"
        if interface not in self.interfaces:
            return f"the {interface} interface has no such input"
        if self.needs == "accelerator" and device == "cpu":
            return "needs a device other than the CPU"
        return None


@dataclass(frozen=True)
class Contract:
    """All clauses of one version, in order."""

    version: str
    clauses: tuple[Clause, ...]

    def __getitem__(self, clause_id: str) -> Clause:
        """The clause of an id.

        Raises:
            ValueError: there is none.
        """
        for clause in self.clauses:
            if clause.id == clause_id:
                return clause
        raise ValueError(f"the contract has no clause {clause_id!r}")

    def __contains__(self, clause_id: object) -> bool:
        return any(clause.id == clause_id for clause in self.clauses)

    def required(self, level: str) -> tuple[Clause, ...]:
        """The clauses of a level and of those below it."""
        levels = LEVELS[: LEVELS.index(level) + 1]
        return tuple(clause for clause in self.clauses if clause.level in levels)

    def causes(self, clause_id: str, failed: Iterable[str]) -> tuple[str, ...]:
        """The failed prerequisites of a clause, nearest first, each with no failed one of its own.

        Args:
            clause_id: of a clause that failed.
            failed: ids of all clauses that failed.
        """
        failed = set(failed)
        direct = [p for p in self._ancestors(clause_id) if p in failed]
        return tuple(p for p in direct if not failed & set(self._ancestors(p)))

    def _ancestors(self, clause_id: str) -> list[str]:
        found: list[str] = []
        for prerequisite in self[clause_id].prerequisites:
            found += [prerequisite, *self._ancestors(prerequisite)]
        return list(dict.fromkeys(found))


@functools.cache
def contract() -> Contract:
    """The contract that this suite checks."""
    text = resources.files("conformance").joinpath("contract.toml").read_text(encoding="utf-8")
    parsed = tomllib.loads(text)
    return Contract(parsed["version"], tuple(_clause(record) for record in parsed["clause"]))


def _clause(record: dict[str, object]) -> Clause:
    frozen = {key: tuple(v) if isinstance(v, list) else v for key, v in record.items()}
    return Clause(**frozen)  # type: ignore[arg-type]
