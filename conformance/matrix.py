"""The matrix: the results of many implementations and releases, side by side."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from conformance.contract import LEVELS, Clause, contract
from conformance.result_file import ResultsError, read_results
from conformance.results import Finding, Header, Line, Results

# Implementation, family, dtype and device: what the releases in a row have in common.
Group = tuple[str, str, str, str]


@dataclass(frozen=True, eq=False)
class Column:
    """One release of an implementation, in one family and dtype.

    Attributes:
        file: the result file that it comes from.
        results: of that file.
        family, dtype: which of its columns.
    """

    file: Path
    results: Results
    family: str
    dtype: str

    @property
    def header(self) -> Header:
        """Of its run."""
        return self.results.header

    @property
    def implementation(self) -> str:
        """The name of the implementation."""
        return self.header.implementation.name

    @property
    def version(self) -> str:
        """The release."""
        return self.header.implementation.version

    @property
    def group(self) -> Group:
        """What its releases have in common: implementation, family, dtype and device."""
        return self.implementation, self.family, self.dtype, self.header.settings.device

    @functools.cached_property
    def lines(self) -> dict[str, Line]:
        """Its lines by clause."""
        own = (self.family, self.dtype)
        return {line.clause: line for line in self.results.lines if line.key[1:] == own}

    @property
    def order(self) -> tuple[object, ...]:
        """What columns are sorted by: the group, then the release."""
        return *self.group, *_release(self.version)


def _release(version: str) -> tuple[bool, Version, str]:
    """Numbered releases in their order, then other names in theirs."""
    try:
        return False, Version(version), ""
    except InvalidVersion:
        return True, Version("0"), version


@dataclass(frozen=True)
class Standing:
    """How a column stands at a level.

    Attributes:
        passed, known, failed: how many clauses; blocked ones count as failed.
        unchecked: how many apply but were not, or only in part, checked.
    """

    passed: int
    known: int
    failed: int
    unchecked: int

    @property
    def word(self) -> str:
        """`failed`, `incomplete`, `known` or `passed`."""
        if self.failed:
            return "failed"
        if self.unchecked:
            return "incomplete"
        return "known" if self.known else "passed"


def standing(column: Column, level: str) -> Standing:
    """How a column stands at a level, those below it not included."""
    own = [line for line in column.lines.values() if line.level == level]
    unchecked = [line for line in own if line.applies and not _checked(line)]
    return Standing(
        passed=sum(line.verdict == "passed" and line not in unchecked for line in own),
        known=sum(line.verdict == "known" for line in own),
        failed=sum(line.verdict in ("failed", "blocked") for line in own),
        unchecked=len(unchecked),
    )


def _checked(line: Line) -> bool:
    return line.complete and all(found.status != "unbuildable" for found in line.checks)


@dataclass(frozen=True)
class Evidence:
    """One way in which one check of a clause fails, over releases.

    Attributes:
        finding: of the newest release.
        column: of the newest release.
        releases: in which it fails so.
        cases: the distinct saved cases, newest first, each with its column and releases.
    """

    finding: Finding
    column: Column
    releases: tuple[str, ...]
    cases: tuple[tuple[Finding, Column, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Failure:
    """A clause that fails in some releases of an implementation for one reason.

    Attributes:
        clause: which.
        columns: of its group, in which it fails or not, in the order of the releases.
        bad: those in which it fails for this reason.
        known: what the known failures say of it; empty of a failure that is not known.
    """

    clause: Clause
    columns: tuple[Column, ...]
    bad: tuple[Column, ...]
    known: str = ""

    @property
    def group(self) -> Group:
        """Implementation, family, dtype and device."""
        return self.columns[0].group

    @property
    def newest(self) -> Line:
        """The line of the newest release in which it fails."""
        return self.bad[-1].lines[self.clause.id]

    @property
    def spans(self) -> list[tuple[str, str]]:
        """First and last release of each run of tested releases in which it fails."""
        runs = itertools.groupby(self.columns, key=lambda column: column in self.bad)
        spans = [list(columns) for is_bad, columns in runs if is_bad]
        return [(span[0].version, span[-1].version) for span in spans]

    @property
    def lasts(self) -> bool:
        """Whether it fails in the newest release tested."""
        return self.columns[-1] in self.bad

    @property
    def evidence(self) -> list[Evidence]:
        """What shows it: one for each check and kind of failure."""
        ways: dict[tuple[str, str], list[tuple[Finding, Column]]] = defaultdict(list)
        for column in reversed(self.bad):
            for finding in column.lines[self.clause.id].failures:
                ways[finding.check, finding.kind].append((finding, column))
        return [_evidence(found) for found in ways.values()]


def _evidence(found: Sequence[tuple[Finding, Column]]) -> Evidence:
    by_case: dict[str, list[tuple[Finding, Column]]] = defaultdict(list)
    for finding, column in found:
        by_case[finding.digest].append((finding, column))
    cases = tuple((*same[0], _versions(same)) for same in by_case.values())
    return Evidence(*found[0], _versions(found), cases)


def _versions(found: Iterable[tuple[Finding, Column]]) -> tuple[str, ...]:
    """Oldest first."""
    return tuple(column.version for _, column in found)[::-1]


@dataclass(frozen=True)
class Matrix:
    """Every column, sorted.

    Attributes:
        columns: by implementation, family, dtype and device, then by release.
    """

    columns: tuple[Column, ...]

    @property
    def results(self) -> list[Column]:
        """One column of each result file, in the order of the columns."""
        return list({column.file: column for column in self.columns}.values())

    @property
    def groups(self) -> list[list[Column]]:
        """Columns that differ only in their release."""
        return [list(own) for _, own in itertools.groupby(self.columns, lambda c: c.group)]

    @property
    def levels(self) -> list[tuple[str, list[Clause]]]:
        """The contract's clauses by level."""
        clauses = contract().clauses
        return [(level, [c for c in clauses if c.level == level]) for level in LEVELS]

    @functools.cached_property
    def failures(self) -> list[Failure]:
        """Every failure, by group and in the contract's order; one for each reason."""
        found = []
        for group in self.groups:
            for _, clauses in self.levels:
                for clause in clauses:
                    reasons: dict[str, list[Column]] = defaultdict(list)
                    for column in group:
                        line = column.lines[clause.id]
                        if line.bad:
                            reasons[line.known[0].what if line.known else ""].append(column)
                    found += [
                        Failure(clause, tuple(group), tuple(bad), known)
                        for known, bad in reasons.items()
                    ]
        return found


def read_matrix(folder: Path) -> Matrix:
    """The result files of a folder and of those in it, put together.

    Raises:
        ResultsError: there is none, one cannot be used, one is of another contract, or two are of
            the same release.
    """
    files = sorted(folder.rglob("*.jsonl"))
    if not files:
        raise ResultsError(f"there is no result file (*.jsonl) in {folder}")
    columns = [
        Column(file, results, family, dtype)
        for file, results in ((file, read_results(file)) for file in files)
        for family in results.header.settings.families
        for dtype in results.header.settings.dtypes
    ]
    _require_comparable(columns)
    return Matrix(tuple(sorted(columns, key=lambda column: column.order)))


def _require_comparable(columns: Iterable[Column]) -> None:
    seen: dict[tuple[object, ...], Path] = {}
    for column in columns:
        if column.header.contract != contract().version:
            raise ResultsError(
                f"{column.file} is of contract {column.header.contract}, this suite has "
                f"{contract().version}: run it again"
            )
        if lacking := [clause.id for clause in contract().clauses if clause.id not in column.lines]:
            raise ResultsError(f"{column.file} has no line for {lacking[0]} in {column.family}")
        other = seen.setdefault((*column.group, column.version), column.file)
        if other != column.file:
            what = f"{column.implementation} {column.version} ({column.family}, {column.dtype})"
            raise ResultsError(
                f"{other} and {column.file} are both of {what}: remove one, or "
                "give the other build another version"
            )
