"""From the cells of a run to the results that are written to a file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path, PurePath

from conformance.cells import Cell, Cells
from conformance.contract import Clause, contract
from conformance.environment import environment, suite
from conformance.judge import limits
from conformance.known import match
from conformance.options import DTYPES, Options
from conformance.record import Record
from conformance.results import (
    Finding,
    Header,
    KnownFailure,
    Line,
    Results,
    Settings,
    Subject,
    totals,
)
from conformance.search import PROFILES


def export(cells: Cells, folder: Path, status: int, complaints: Iterable[str]) -> Results:
    """The results of a run: a line for every clause of the contract, family and dtype.

    Args:
        cells: of the run.
        folder: that the file will stand in; saved cases are named relative to it.
        status: the exit status.
        complaints: what failed the run beside its clauses.
    """
    lines = [
        _line(cells, clause, family, dtype, folder)
        for clause in contract().clauses
        for family, dtype in cells.columns
    ]
    return Results.of(_header(cells.options), lines, status, complaints)


def _header(options: Options) -> Header:
    found = options.implementation
    return Header(
        contract=contract().version,
        suite=suite(),
        implementation=Subject(
            spec=options.spec,
            name=found.name,
            version=found.version,
            interface=found.interface,
            families=tuple(found.families),
            replacements=tuple(getattr(found, "replacements", ())),
        ),
        settings=Settings(
            device=str(options.device),
            dtypes=options.dtypes,
            families=options.families,
            levels=options.checked,
            required=options.required,
            clauses=options.clauses if options.asked else (),
            profile=options.profile,
            examples=PROFILES[options.profile],
            seed=options.seed,
            error_match=options.matching,
            known=options.known_from,
        ),
        environment=environment(found, options.device),
        limits={dtype: _limits(dtype) for dtype in options.dtypes},
    )


def _limits(dtype: str) -> dict[str, float]:
    found = limits(DTYPES[dtype])
    return {"row": found.row, "element": found.element}


def _line(cells: Cells, clause: Clause, family: str, dtype: str, folder: Path) -> Line:
    options, cell = cells.options, cells.cell(clause.id, family, dtype)
    interface, device = options.implementation.interface, options.device.type
    checks = tuple(_finding(record, folder) for record in cell.records)
    cases, left_out, worst = totals(checks)
    return Line(
        clause=clause.id,
        level=clause.level,
        family=family,
        dtype=dtype,
        applies=clause.inapplicable(family, interface, device) is None,
        required=options.requires(clause.id),
        complete=cells.complete(clause.id, family, cell),
        verdict=cell.mark,
        reason=cell.reason,
        blocked_by=cell.causes,
        cases=cases,
        left_out=left_out,
        worst=worst,
        known=_known(options, clause.id, family, dtype, cell),
        checks=checks,
    )


def _known(
    options: Options, clause: str, family: str, dtype: str, cell: Cell
) -> tuple[KnownFailure, ...]:
    entry = match(options.known, clause, family, dtype)
    if entry is None or not any(record.status == "known" for record in cell.records):
        return ()
    return (KnownFailure(entry.what, entry.link, entry.releases),)


def _finding(record: Record, folder: Path) -> Finding:
    passed = Finding(
        check=record.check,
        status=record.status,
        cases=record.cases,
        left_out=record.left_out,
        units=record.units,
        notes=record.notes,
    )
    if record.status not in ("failed", "known"):
        return passed
    return dataclasses.replace(
        passed,
        error=record.error,
        sentence=record.sentence,
        kind=record.kind,
        expected=record.expected,
        came=record.came,
        where=record.where,
        stateful=record.stateful,
        case=record.case,
        digest=record.digest,
        file=_relative(record.file, folder),
        witness=record.witness,
    )


def _relative(file: str, folder: Path) -> str:
    """A saved case as seen from a folder; empty if it could not be saved."""
    if not Path(file).is_file():
        return ""
    return PurePath(os.path.relpath(file, folder)).as_posix()
