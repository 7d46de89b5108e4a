"""A package: everything that a certificate rests on, in one folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.answers import Answers, answer, write_answers
from conformance.artifact import Artifact
from conformance.cells import Cells
from conformance.certificate import certificate
from conformance.certification import Certification
from conformance.challenge import challenge
from conformance.document import write_json
from conformance.driver import Driver
from conformance.environment import inventory
from conformance.export import export
from conformance.isolation.remote import RemoteDriver
from conformance.options import Options
from conformance.report import report
from conformance.result_file import write_results
from conformance.results import Results
from conformance.statement import digest, statement, subject_of
from conformance.waivers import used

STATEMENT = "statement.json"
ENVELOPE = "statement.dsse.json"
KEY = "key.pub"
RESULTS = "results.jsonl"
ENVIRONMENT = "environment.json"
REPORT = "report.html"
JUNIT = "junit.xml"
WAIVERS = "waivers.toml"
FAILURES = "failures"
WITNESS = "witness"

# What the statement does not cover, since it is made of it.
SIGNED = (STATEMENT, ENVELOPE, KEY)


@dataclass(frozen=True)
class Written:
    """What became of a run for a certificate.

    Attributes:
        status: the exit status.
        line: that says so.
    """

    status: int
    line: str


def write_package(
    cells: Cells, driver: Driver | RemoteDriver, subject: Artifact, complaints: Iterable[str]
) -> Written:
    """Put the challenge to an implementation and write the package of a run.

    Args:
        cells: of the run, whose failing cases are saved in the package already.
        driver: of the implementation.
        subject: the implementation's files.
        complaints: what failed the run beside its clauses.

    Raises:
        OSError: it cannot be written.
    """
    options, order = cells.options, cells.options.certification
    assert order is not None
    order.folder.mkdir(parents=True, exist_ok=True)
    results = _results(cells, order, list(complaints))
    write_results(results, order.folder / RESULTS)
    details = inventory(results.header.environment, options.device)
    (order.folder / ENVIRONMENT).write_bytes(write_json(details))
    if order.waivers:
        (order.folder / WAIVERS).write_bytes(order.waivers_file)
    _write_witness(options, order, driver)
    page = report(results, order.waivers, subject, order.challenge, details)
    (order.folder / REPORT).write_text(page, encoding="utf-8")
    said = statement(
        subject_of(subject), results, order.waivers, order.challenge, contents(order.folder)
    )
    (order.folder / STATEMENT).write_bytes(write_json(said))
    found = certificate(results, used(order.waivers, results))
    return Written(results.footer.status, f"{found.summary(found.grades)}: {order.folder}")


def contents(folder: Path) -> dict[str, dict[str, Any]]:
    """The digests of the files of a package of one's own that its statement covers, by path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: digest(path.read_bytes()) for name, path in named.items() if name not in SIGNED}


def altered(folder: Path, said_of_it: bytes) -> list[str]:
    """The files of a package of one's own that are not those that its statement covers.

    Args:
        folder: of the package.
        said_of_it: the statement.

    Raises:
        ValueError, KeyError, TypeError: it is no statement.
    """
    said = json.loads(said_of_it)["predicate"]["conformance"]["files"]
    found = contents(folder)
    return sorted(name for name in {*said, *found} if said.get(name) != found.get(name))


def _results(cells: Cells, order: Certification, complaints: list[str]) -> Results:
    """The results with the exit status that the level and the waivers make."""
    found = export(cells, order.folder, 0, complaints)
    excused = used(order.waivers, found)
    complaints += [
        f"the waiver of {waiver} matches nothing that failed, with these cases, on this device"
        for waiver in order.waivers
        if waiver.key not in excused
    ]
    good = certificate(found, excused).result != "FAILED" and not complaints
    return Results.of(found.header, found.lines, 0 if good else 1, complaints)


def _write_witness(options: Options, order: Certification, driver: Driver | RemoteDriver) -> None:
    folder = order.folder / WITNESS
    folder.mkdir()
    for family in options.families:
        for dtype in options.dtypes:
            interface = options.implementation.interface
            questions = challenge(order.challenge, family, dtype, interface)
            found = answer(driver, questions)
            write_answers(Answers(order.challenge, family, dtype, found), folder)
