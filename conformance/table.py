"""The results of a run by clause: what the terminal shows."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.check import all_checks
from conformance.contract import LEVELS, Clause, contract
from conformance.diagnosis import Failure, explained
from conformance.known import Known, match
from conformance.options import Options
from conformance.record import Record

Mark = Literal["passed", "failed", "known", "blocked", "not checked"]

_STYLES = {"passed": "green", "failed": "bold red", "known": "yellow", "blocked": "magenta"}


@dataclass(frozen=True)
class Cell:
    """A clause for one family and dtype.

    Attributes:
        mark: what became of it.
        records: of the checks that cover it.
        causes: the failed clauses that explain it, if it is blocked.
        reason: why it was not checked.
    """

    mark: Mark
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


class Results:
    """Every cell of a run.

    Attributes:
        options: of the run.
        columns: family and dtype of each column.
    """

    def __init__(self, options: Options, records: Iterable[Record]) -> None:
        self.options = options
        self.columns = [(f, d) for f in options.families for d in options.dtypes]
        self._checks = all_checks()
        self._records: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
        for record in records:
            for clause in record.clauses:
                self._records[clause, record.family, record.dtype].append(record)

    @property
    def clauses(self) -> list[Clause]:
        """The clauses of the run, by level and then in the contract's order."""
        asked = [clause for clause in contract().clauses if clause.id in self.options.clauses]
        return sorted(asked, key=lambda clause: LEVELS.index(clause.level))

    def cell(self, clause: str, family: str, dtype: str) -> Cell:
        """What became of a clause for a family and dtype."""
        return self._cells[clause, family, dtype]

    def cells(self) -> Iterable[tuple[Clause, str, str, Cell]]:
        """Every cell, with its clause, family and dtype."""
        for clause in self.clauses:
            for family, dtype in self.columns:
                yield clause, family, dtype, self.cell(clause.id, family, dtype)

    @functools.cached_property
    def _cells(self) -> dict[tuple[str, str, str], Cell]:
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

    def stale(self) -> list[str]:
        """What known failures say that no longer happens, one line each."""
        lines = []
        for entry in self.options.known:
            if entry.sometimes:
                continue
            for clause, family, dtype, cell in self.cells():
                fixed = cell.mark == "passed" and self._complete(clause.id, family, cell)
                if fixed and entry.names(clause.id, family, dtype):
                    lines.append(
                        f"{clause.id} {family} {dtype} is a known failure ({entry.what}), "
                        "but it passed: remove it from the file"
                    )
        return lines

    def ok(self) -> bool:
        """Whether every clause of the required level passed or is known to fail."""
        required = [cell for clause, _, _, cell in self.cells() if self.options.requires(clause.id)]
        failed = any(cell.mark in ("failed", "blocked") for cell in required)
        abandoned = any(r.status == "abandoned" for cell in required for r in cell.records)
        return not (failed or abandoned or self.stale())

    def _explained(self, family: str, dtype: str) -> dict[str, tuple[str, ...]]:
        """The causes of every clause that failed, known failures included."""
        broken = {
            record.check: Failure(record.clauses, record.value, record.after)
            for (_, f, d), records in self._records.items()
            for record in records
            if (f, d) == (family, dtype) and record.status in ("failed", "known")
        }
        return explained(broken.values())

    def _complete(self, clause: str, family: str, cell: Cell) -> bool:
        """Whether all of a clause's checks were made, not only those that `-k` left."""
        checks = [c for c in self._checks if clause in c.clauses and family in c.families]
        return len(cell.records) == len(checks)

    def _reason(self, clause: str, family: str, records: Sequence[Record]) -> str:
        options = self.options
        why = contract()[clause].inapplicable(
            family, options.implementation.interface, options.device.type
        )
        if why:
            return why
        if gave_up := next((r.came for r in records if r.status == "abandoned"), ""):
            return f"the run was given up: {gave_up}"
        if any(r.status == "refused" for r in records):
            refusal = next(r.came for r in records if r.status == "refused")
            return f"the implementation refuses the configuration: {refusal}"
        if records:
            return "the reference overflows in every drawn case"
        return "deselected"


def print_results(console: Console, results: Results) -> None:
    """Print the table, what was not checked, the failures and the summary."""
    console.print(_table(results))
    _print_notes(console, results)
    _print_not_checked(console, results)
    _print_known(console, results)
    for clause, cell, record in results.failures():
        print_failure(console, clause, cell, record, results.options.again)
    for line in results.stale():
        console.print(Text(line, style="bold red"))
    _print_summary(console, results)


def _table(results: Results) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("", max_width=30, overflow="ellipsis", no_wrap=True)
    several = len(results.options.dtypes) > 1
    for family, dtype in results.columns:
        table.add_column(f"{family}\n{dtype}" if several else family, no_wrap=True)
    level = None
    for clause in results.clauses:
        if clause.level != level:
            table.add_section()
            table.add_row(Text(clause.level, style="bold"))
            level = clause.level
        cells = [results.cell(clause.id, family, dtype) for family, dtype in results.columns]
        texts = [Text(str(cell), style=_STYLES.get(cell.mark, "dim")) for cell in cells]
        table.add_row(clause.id, clause.title, *texts)
    table.caption = "passed: cases judged; in brackets the largest error, in noise units"
    table.caption_justify = "left"
    return table


def _print_notes(console: Console, results: Results) -> None:
    for clause, family, dtype, cell in results.cells():
        if clause.id == "EN-13" and cell.mark == "passed":
            notes = sorted({note for record in cell.records for note in record.notes})
            console.print(f"{clause.id} {family} {dtype}: {'; '.join(notes)}", highlight=False)


def _print_not_checked(console: Console, results: Results) -> None:
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for clause, family, dtype, cell in results.cells():
        if cell.mark == "not checked":
            reasons[cell.reason][clause.id].append(_column(results, family, dtype))
    for reason, clauses in reasons.items():
        every = len(results.columns)
        names = [
            clause if len(columns) == every else f"{clause} ({', '.join(columns)})"
            for clause, columns in clauses.items()
        ]
        console.print(f"not checked: {', '.join(names)}: {reason}", highlight=False, soft_wrap=True)


def _print_known(console: Console, results: Results) -> None:
    found: dict[Known, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for clause, family, dtype, cell in results.cells():
        if cell.mark == "known":
            entry = match(results.options.known, clause.id, family, dtype)
            assert entry is not None
            found[entry][_column(results, family, dtype)].append(clause.id)
    for entry, columns in found.items():
        where = "; ".join(f"{column}: {', '.join(ids)}" for column, ids in columns.items())
        line = Text(f"known: {entry.what} [{entry.link}]: {where}", style="yellow")
        console.print(line, soft_wrap=True)


def _column(results: Results, family: str, dtype: str) -> str:
    return family if len(results.options.dtypes) == 1 else f"{family} {dtype}"


def print_failure(console: Console, clause: Clause, cell: Cell, record: Record, again: str) -> None:
    """Print one failure in at most ten lines."""
    head = f"{clause.id} ({clause.level}) {record.family} {record.dtype}: {record.sentence}"
    lines = [("expected", record.expected), ("came", record.came), ("where", record.where)]
    lines += [("printed", line) for line in record.printed.splitlines()]
    if cell.causes:
        lines.append(("blocked", f"by {', '.join(cell.causes)}, which may explain it"))
    if "SE-08" in record.after:
        lines.append(("state", "shows only after earlier calls; a new encoder gets it right"))
    lines += [
        ("case", record.case),
        ("replay", f"python -m conformance replay {record.file} {again}"),
    ]
    console.print()
    console.print(Text(head, style="bold"), soft_wrap=True)
    for name, text in lines:
        if text:
            console.print(f"  {name:9}{text}", highlight=False, markup=False, soft_wrap=True)


def _print_summary(console: Console, results: Results) -> None:
    console.print()
    for level in LEVELS:
        marks = [cell.mark for clause, _, _, cell in results.cells() if clause.level == level]
        if marks:
            counts = [
                f"{marks.count(m)} {m}" for m in dict.fromkeys((*_STYLES, *marks)) if m in marks
            ]
            console.print(f"{level}: {', '.join(counts)}", highlight=False)
