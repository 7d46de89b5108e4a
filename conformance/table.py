"""The results of a run by clause: what the terminal shows."""

from __future__ import annotations

from collections import defaultdict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.cells import Cell, Cells
from conformance.contract import LEVELS, Clause
from conformance.known import Known, match
from conformance.record import Record

_STYLES = {"passed": "green", "failed": "bold red", "known": "yellow", "blocked": "magenta"}


def print_results(console: Console, cells: Cells) -> None:
    """Print the table, what was not checked, the failures and the summary."""
    console.print(_table(cells))
    _print_notes(console, cells)
    _print_not_checked(console, cells)
    _print_known(console, cells)
    _print_unwitnessed(console, cells)
    for clause, cell, record in cells.failures():
        print_failure(console, clause, cell, record, cells.options.again)
    for line in cells.complaints():
        console.print(Text(line, style="bold red"), soft_wrap=True)
    _print_summary(console, cells)


def _table(cells: Cells) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("clause", no_wrap=True)
    table.add_column("", max_width=30, overflow="ellipsis", no_wrap=True)
    several = len(cells.options.dtypes) > 1
    for family, dtype in cells.columns:
        table.add_column(f"{family}\n{dtype}" if several else family, no_wrap=True)
    level = None
    for clause in cells.clauses:
        if clause.level != level:
            table.add_section()
            table.add_row(Text(clause.level, style="bold"))
            level = clause.level
        row = [cells.cell(clause.id, family, dtype) for family, dtype in cells.columns]
        texts = [Text(str(cell), style=_STYLES.get(cell.mark, "dim")) for cell in row]
        table.add_row(clause.id, clause.title, *texts)
    table.caption = "passed: cases judged; in brackets the largest error, in noise units"
    table.caption_justify = "left"
    return table


def _print_notes(console: Console, cells: Cells) -> None:
    for clause, family, dtype, cell in cells.cells():
        if clause.id == "EN-13" and cell.mark == "passed":
            notes = sorted({note for record in cell.records for note in record.notes})
            console.print(f"{clause.id} {family} {dtype}: {'; '.join(notes)}", highlight=False)


def _print_not_checked(console: Console, cells: Cells) -> None:
    reasons: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for clause, family, dtype, cell in cells.cells():
        if cell.mark == "not checked":
            reasons[cell.reason][clause.id].append(_column(cells, family, dtype))
    for reason, clauses in reasons.items():
        every = len(cells.columns)
        names = [
            clause if len(columns) == every else f"{clause} ({', '.join(columns)})"
            for clause, columns in clauses.items()
        ]
        console.print(f"not checked: {', '.join(names)}: {reason}", highlight=False, soft_wrap=True)


def _print_known(console: Console, cells: Cells) -> None:
    found: dict[Known, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for clause, family, dtype, cell in cells.cells():
        if cell.mark == "known":
            entry = match(cells.options.known, clause.id, family, dtype)
            assert entry is not None
            found[entry][_column(cells, family, dtype)].append(clause.id)
    for entry, columns in found.items():
        where = "; ".join(f"{column}: {', '.join(ids)}" for column, ids in columns.items())
        line = Text(f"known: {entry.what} [{entry.link}]: {where}", style="yellow")
        console.print(line, soft_wrap=True)


def _print_unwitnessed(console: Console, cells: Cells) -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for clause, family, dtype, cell in cells.cells():
        if cell.mark == "known" and not any(record.witness for record in cell.records):
            found[_column(cells, family, dtype)].append(clause.id)
    if found:
        where = "; ".join(f"{column}: {', '.join(ids)}" for column, ids in found.items())
        line = f"known, but without a witness (--save-witnesses makes them): {where}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _column(cells: Cells, family: str, dtype: str) -> str:
    return family if len(cells.options.dtypes) == 1 else f"{family} {dtype}"


def print_failure(console: Console, clause: Clause, cell: Cell, record: Record, again: str) -> None:
    """Print one failure in at most ten lines."""
    head = f"{clause.id} ({clause.level}) {record.family} {record.dtype}: {record.sentence}"
    lines = [("expected", record.expected), ("came", record.came), ("where", record.where)]
    lines += [("printed", line) for line in record.printed.splitlines()]
    if cell.causes:
        lines.append(("blocked", f"by {', '.join(cell.causes)}, which may explain it"))
    if record.stateful:
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


def _print_summary(console: Console, cells: Cells) -> None:
    console.print()
    for level in LEVELS:
        marks = [cell.mark for clause, _, _, cell in cells.cells() if clause.level == level]
        if marks:
            counts = [
                f"{marks.count(m)} {m}" for m in dict.fromkeys((*_STYLES, *marks)) if m in marks
            ]
            console.print(f"{level}: {', '.join(counts)}", highlight=False)
