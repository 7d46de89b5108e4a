"""The matrix as a page, as Markdown and as a badge."""

from __future__ import annotations

import math
import os
import shlex
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup, escape

from conformance.contract import LEVELS, contract
from conformance.known import KNOWN_FOLDER
from conformance.matrix import Column, Failure, Group, Matrix, standing
from conformance.plot import HEIGHT, plot
from conformance.results import Finding, Line
from conformance.template import templates

MARKS = {"passed": "✓", "failed": "✗", "known": "◆", "blocked": "⊘", "not checked": "·"}

_MARKDOWN = {"|": "&#124;", "*": "&#42;", "`": "&#96;", "[": "&#91;", "_": "&#95;", "\n": " "}


@dataclass(frozen=True)
class Place:
    """Where a page will stand.

    Attributes:
        folder: of the page; links are relative to it.
        date: that it bears.
    """

    folder: Path
    date: str


def page(matrix: Matrix, place: Place) -> str:
    """The whole matrix as one static page."""
    return _render("matrix.html.jinja", matrix, place)


def markdown(matrix: Matrix, place: Place) -> str:
    """The standing of each release, and what fails, for a README."""
    return _render("matrix.md.jinja", matrix, place)


def badge(matrix: Matrix) -> str:
    """How the columns stand at the core level, as SVG."""
    words = [standing(column, "core").word for column in matrix.columns]
    good, total = words.count("passed"), len(words)
    worst = next(w for w in ("failed", "incomplete", "known", "passed") if w in words)
    message = _MESSAGES[worst] if total == 1 else f"{good} of {total} pass core"
    template = _environment(Path()).get_template("badge.svg.jinja")
    label = f"Step3-VL {contract().version}"
    return template.render(label=label, message=message, colour=_COLOURS[worst])


_MESSAGES = {
    "failed": "core failed",
    "incomplete": "core incomplete",
    "known": "known failures",
    "passed": "core passed",
}

_COLOURS = {"failed": "#b3261e", "incomplete": "#5f6368", "known": "#8a5a00", "passed": "#1b6e35"}


def _render(template: str, matrix: Matrix, place: Place) -> str:
    return (
        _environment(place.folder)
        .get_template(template)
        .render(
            matrix=matrix,
            date=place.date,
            contract=contract(),
            levels=LEVELS,
            marks=MARKS,
            unchecked=_unchecked(matrix),
            anchors=_anchors(matrix),
            summary=_summary(matrix),
            height=HEIGHT,
        )
    )


def _environment(folder: Path) -> Environment:
    made = templates()
    made.globals.update(plot=plot, standing=standing)
    made.filters.update(
        units=_units,
        plain=_plain,
        linked=_linked,
        spans=_spans,
        href=lambda found: _href(found[0], found[1], folder),
        command=lambda found: _command(found[0], found[1]),
    )
    return made


def _anchors(matrix: Matrix) -> dict[tuple[Column, str], str]:
    """The place in the page that a bad cell leads to."""
    return {
        (column, failure.clause.id): f"f{number}"
        for number, failure in enumerate(matrix.failures)
        for column in failure.bad
    }


def _summary(matrix: Matrix) -> list[tuple[tuple[Group, str, str], list[str]]]:
    """The clauses that fail in the same releases of a group for the same reason."""
    found: dict[tuple[Group, str, str], list[str]] = defaultdict(list)
    for failure in matrix.failures:
        what = failure.known or _in_words(failure.newest)
        found[failure.group, _spans(failure), what].append(failure.clause.id)
    return list(found.items())


def _in_words(line: Line) -> str:
    """What came of a failure that is not known."""
    came = line.failures[0].came if line.failures else "no case"
    return f"{MARKS[line.verdict]} {came}"


def _unchecked(matrix: Matrix) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """The reasons why something was not checked, each with the clauses of each group."""
    found: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    for column in matrix.columns:
        for line in column.lines.values():
            if line.verdict == "not checked":
                where = f"{column.implementation} {column.family}"
                found[line.reason][where][line.clause] = None
    return [
        (reason, [(where, list(clauses)) for where, clauses in groups.items()])
        for reason, groups in found.items()
    ]


def _units(error: float) -> str:
    return "∞" if math.isinf(error) else f"{error:.3g}"


def _plain(text: str) -> Markup:
    """Text for a cell of a Markdown table: nothing in it is markup."""
    safe = str(escape(text))
    return Markup("".join(_MARKDOWN.get(letter, letter) for letter in safe))


def _linked(link: str) -> bool:
    """Whether it may be followed: a result file may come from a stranger."""
    return link.startswith(("https://", "http://"))


def _spans(failure: Failure) -> str:
    """From which to which release: `0.5.14 to 0.5.23`."""
    spans = [first if first == last else f"{first} to {last}" for first, last in failure.spans]
    return ", ".join(spans)


def _saved(finding: Finding, column: Column) -> Path | None:
    """The saved case: the suite's own witness, or the file beside the results; None for neither."""
    witness, beside = KNOWN_FOLDER / finding.witness, column.file.parent / finding.file
    if finding.witness and witness.resolve().is_relative_to(KNOWN_FOLDER) and witness.is_file():
        return witness
    return beside if finding.file and beside.is_file() else None


def _relative(file: Path, folder: Path) -> str:
    return PurePath(os.path.relpath(file, folder)).as_posix()


def _href(finding: Finding, column: Column, folder: Path) -> str:
    """A link to the saved case; empty if there is none."""
    file = _saved(finding, column)
    return quote(_relative(file, folder)) if file else ""


def _command(finding: Finding, column: Column) -> str:
    """The line that replays a case, from the folder where the page was made; empty without one."""
    file = _saved(finding, column)
    if file is None:
        return ""
    spec = column.header.implementation.spec
    path = shlex.quote(_relative(file, Path()))
    return f"python -m conformance replay {path} --impl={shlex.quote(spec)}"
