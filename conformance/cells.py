"""What became of each clause: the records of a run, put together."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.check import all_checks
from conformance.contract import LEVELS, Clause, contract
from conformance.diagnosis import Failure, explained
from conformance.known import Known
from conformance.options import Options
from conformance.record import Record
from conformance.results import Key, Verdict

_NOT_JUDGED = {
    "abandoned": "the run was given up",
    "refused": "the implementation refuses the configuration",
    "unbuildable": "no encoder can be built",
}


@dataclass(frozen=True)
class Cell:
    """A clause for one family and dtype.

    Attributes:
        mark: what became of it.
        records: of the checks that cover it.
        causes: the failed clauses that explain it, if it is blocked.
        reason: why it was not checked.
    """

    mark: Verdict
    records: tuple[Record, ...] = ()
    causes: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.mark == "not checked":
            return "-"
        if self.mark == "blocked":
            return f"blocked by {self.causes[0]}"
        if self.mark == "passed":
            cases = sum(record.cases for record in self.records)
            units = max(record.units for record in self.records)
            return f"passed {cases}" + (f" ({units:.2g})" if units else "")
        error = max(record.error for record in self.records)
        return self.mark + (f" ({error:.2g})" if error else "")


class Cells:
    """Every cell of a run: the one aggregation that the table and the result file share.

    Attributes:
        options: of the run.
        columns: family and dtype of each column.
    """

    def __init__(self, options: Options, records: Iterable[Record]) -> None:
        self.options = options
        self.columns = [(f, d) for f in options.families for d in options.dtypes]
        self._checks = all_checks()
        self._records: dict[Key, list[Record]] = defaultdict(list)
        order = {check.name: place for place, check in enumerate(self._checks)}
        for record in sorted(records, key=lambda record: order[record.check]):
            for clause in record.clauses:
                self._records[clause, record.family, record.dtype].append(record)

    @property
    def clauses(self) -> list[Clause]:
        """The clauses of the run, by level and then in the contract's order."""
        asked = [clause for clause in contract().clauses if clause.id in self.options.clauses]
        return sorted(asked, key=lambda clause: LEVELS.index(clause.level))

    def cell(self, clause: str, family: str, dtype: str) -> Cell:
        """What became of a clause for a family and dtype, asked for or not."""
        if clause not in self.options.clauses:
            return Cell("not checked", reason=self._reason(clause, family, ()))
        return self._cells[clause, family, dtype]

    def cells(self) -> Iterable[tuple[Clause, str, str, Cell]]:
        """Every cell of the run's clauses, with its clause, family and dtype."""
        for clause in self.clauses:
            for family, dtype in self.columns:
                yield clause, family, dtype, self.cell(clause.id, family, dtype)

    @functools.cached_property
    def _cells(self) -> dict[Key, Cell]:
        found = {}
        for family, dtype in self.columns:
            causes = self._explained(family, dtype)
            for clause in self.clauses:
                found[clause.id, family, dtype] = self._cell(clause.id, family, dtype, causes)
        return found

    def _cell(
        self, clause: str, family: str, dtype: str, causes: Mapping[str, tuple[str, ...]]
    ) -> Cell:
        records = tuple(self._records[clause, family, dtype])
        judged = [r for r in records if r.status in ("passed", "failed", "known")]
        broken = any(r.status == "failed" for r in judged)
        abandoned = any(r.status == "abandoned" for r in records)
        if not judged or (abandoned and not broken):
            return Cell("not checked", records, reason=self._reason(clause, family, records))
        if not broken:
            known = any(r.status == "known" for r in judged)
            return Cell("known" if known else "passed", records)
        return Cell("blocked" if causes[clause] else "failed", records, causes[clause])

    def failures(self) -> list[tuple[Clause, Cell, Record]]:
        """Every check that failed and is not known to."""
        return [
            (clause, cell, record)
            for clause, _, _, cell in self.cells()
            for record in cell.records
            if record.status == "failed"
        ]

    def complaints(self) -> list[str]:
        """What known failures say that is not so, one line each."""
        return [
            complaint
            for entry in self.options.known
            for complaint in (*self._unused(entry), *self._untrue(entry))
        ]

    def _untrue(self, entry: Known) -> Iterable[str]:
        """What an entry says that no longer happens, or happens in another way."""
        for clause, family, dtype, cell in self.cells():
            if not entry.names(clause.id, family, dtype):
                continue
            where = f"{clause.id} {family} {dtype} is a known failure ({entry.what})"
            claims = {record.claim: record for record in cell.records}
            if (
                cell.mark == "passed"
                and not entry.sometimes
                and self.complete(clause.id, family, cell)
            ):
                yield f"{where}, but it passed: fixed; remove it from the file"
            elif "fixed" in claims:
                yield f"{where}, but its witness passed: fixed, or save another"
            elif "different" in claims:
                came = claims["different"].came
                yield f"{where}, but its witness fails differently: {came}; correct the entry"

    def _unused(self, entry: Known) -> Iterable[str]:
        """The clauses and families of an entry that this implementation never meets."""
        found, device = self.options.implementation, self.options.device.type
        if not set(entry.families) & set(found.families):
            yield (
                f"the known failure ({entry.what}) is unused: {found.name} {found.version} has no "
                f"{' or '.join(entry.families)}; correct its releases or families"
            )
        for clause in entry.clauses:
            for family in entry.families:
                if family in self.options.families and clause in self.options.clauses:
                    why = contract()[clause].inapplicable(family, found.interface, device)
                    if why:
                        where = f"{clause} {family} is a known failure ({entry.what})"
                        yield f"{where}, but is never met: unused, {why}; remove it"

    def ok(self) -> bool:
        """Whether every clause of the required level passed or is known to fail."""
        required = [cell for clause, _, _, cell in self.cells() if self.options.requires(clause.id)]
        failed = any(cell.mark in ("failed", "blocked") for cell in required)
        abandoned = any(r.status == "abandoned" for cell in required for r in cell.records)
        return not (failed or abandoned or self.complaints())

    def _explained(self, family: str, dtype: str) -> dict[str, tuple[str, ...]]:
        """The causes of every clause that failed, known failures included."""
        broken = {
            record.check: Failure(record.clauses, record.value, record.after)
            for (_, f, d), records in self._records.items()
            for record in records
            if (f, d) == (family, dtype) and record.status in ("failed", "known")
        }
        return explained(broken.values())

    def complete(self, clause: str, family: str, cell: Cell) -> bool:
        """Whether all of a clause's checks were made, not only those that `-k` left."""
        checks = [check for check in self._checks if check.covers(clause, family)]
        return len(cell.records) == len(checks)

    def _reason(self, clause: str, family: str, records: Sequence[Record]) -> str:
        options = self.options
        why = contract()[clause].inapplicable(
            family, options.implementation.interface, options.device.type
        )
        if why:
            return why
        if clause not in options.clauses:
            return "not asked for"
        for status, what in _NOT_JUDGED.items():
            for record in records:
                if record.status == status:
                    return f"{what}: {record.came}"
        if records:
            return "the reference overflows in every drawn case"
        return "deselected, or the run ended before it"
