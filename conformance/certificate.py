"""The certificate: the level that each family reaches, with what a waiver excuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from conformance.contract import LEVELS
from conformance.results import Key, Line, Results

Standing = Literal["passed", "waived", "unjudged", "failed"]
Result = Literal["PASSED", "WARNED", "FAILED"]
Reached = Literal["none", "core", "strict", "extended"]


@dataclass(frozen=True)
class Grade:
    """What the results of a family come to, in all dtypes.

    Attributes:
        level: the highest of which every clause passed, is waived or stays open.
        result: `FAILED` if not even core is reached, `WARNED` if a clause of the level or of one
            below is waived or open.
    """

    level: Reached
    result: Result

    def __str__(self) -> str:
        return f"{self.result}, level {self.level}"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Certificate:
    """What results come to.

    Attributes:
        grades: of each family.
        standings: of each line that applies, by its key.
    """

    grades: dict[str, Grade]
    standings: dict[Key, Standing]

    @property
    def result(self) -> Result:
        """That of the worst family."""
        found = {grade.result for grade in self.grades.values()}
        return "FAILED" if "FAILED" in found else "WARNED" if "WARNED" in found else "PASSED"

    @property
    def certified(self) -> list[str]:
        """The families that reach core."""
        return [name for name, grade in self.grades.items() if grade.level != "none"]

    def summary(self, families: Collection[str]) -> str:
        """The grades of some families, on one line."""
        return "; ".join(f"{name} {self.grades[name]}" for name in self.grades if name in families)

    def named(self, *standings: Standing) -> list[str]:
        """The names of the lines that stand so."""
        return [" ".join(key) for key, standing in self.standings.items() if standing in standings]


def certificate(results: Results, waived: Collection[Key]) -> Certificate:
    """What results come to.

    Args:
        results: of every clause.
        waived: keys of the lines that a waiver excuses.
    """
    lines = [line for line in results.lines if line.applies]
    standings = {line.key: standing(line, line.key in waived) for line in lines}
    return Certificate(
        {
            family: _grade([line for line in lines if line.family == family], standings)
            for family in results.header.settings.families
        },
        standings,
    )


def _grade(lines: Sequence[Line], standings: Mapping[Key, Standing]) -> Grade:
    level: Reached = "none"
    for step in LEVELS:
        if any(standings[line.key] == "failed" for line in lines if line.level == step):
            break
        level = step
    if level == "none":
        return Grade(level, "FAILED")
    reached = LEVELS[: LEVELS.index(level) + 1]
    found = {standings[line.key] for line in lines if line.level in reached}
    return Grade(level, "PASSED" if found <= {"passed"} else "WARNED")


def standing(line: Line, waived: bool) -> Standing:
    """How a line that applies stands."""
    if line.verdict == "passed" and line.complete:
        return "passed"
    if line.bad and line.complete and waived:
        return "waived"
    if line.verdict == "not checked" and line.complete and _may_stay_open(line):
        return "unjudged"
    return "failed"


def _may_stay_open(line: Line) -> bool:
    """Whether there may be nothing to judge, although the clause applies.

    No checkpoint of `PerceptionEncoder` has the class token that EN-04 asks for, so no encoder
    must; and in float16 the reference itself may overflow in every case of EN-12.
    """
    statuses = {finding.status for finding in line.checks}
    if line.clause == "EN-04":
        return statuses == {"refused"} and line.family != "step3"
    return line.clause == "EN-12" and statuses == {"empty"} and line.dtype == "float16"
