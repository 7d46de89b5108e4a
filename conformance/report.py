"""The report of a certificate: one static page for people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from conformance.artifact import Artifact
from conformance.certificate import Standing, certificate
from conformance.contract import LEVELS, Level, contract
from conformance.error_plot import error_plot
from conformance.results import Key, Line, Results
from conformance.template import templates
from conformance.waivers import Waiver, used

_MARKS: dict[Standing, tuple[str, str]] = {
    "passed": ("✓", "passed"),
    "waived": ("◆", "waived"),
    "unjudged": ("○", "open"),
    "failed": ("✗", "failed"),
}


def report(
    results: Results,
    waivers: Sequence[Waiver],
    subject: Artifact,
    challenge: str,
    environment: Mapping[str, Any],
) -> str:
    """The page of a certificate; everything that results say is text in it, never markup.

    Args:
        results: of the run.
        waivers: that were given.
        subject: what was checked.
        challenge: the nonce.
        environment: in full, as of `environment.inventory`.
    """
    excused = used(waivers, results)
    found = certificate(results, excused)
    lines = {line.key: line for line in results.lines}
    settings = results.header.settings
    made = templates()
    made.filters["units"] = _units
    return made.get_template("report.html.jinja").render(
        found=found,
        header=results.header,
        footer=results.footer,
        subject=subject,
        challenge=challenge,
        environment=environment,
        waivers=[(waiver, waiver.key in excused) for waiver in waivers],
        contract=contract(),
        levels=LEVELS,
        columns=[(f, d) for f in settings.families for d in settings.dtypes],
        lines=lines,
        failures=[(line, excused.get(line.key)) for line in results.lines if line.bad],
        counts=lambda family, level: _counts(results, found.standings, family, level),
        plot=Markup(error_plot(results)),
        cell=lambda line: _cell(line, found.standings),
    )


def _counts(results: Results, standings: Mapping[Key, Standing], family: str, level: Level) -> str:
    """How many lines of a family and level stand how, in words."""
    own = (line for line in results.lines if (line.family, line.level) == (family, level))
    found = Counter(standings.get(line.key) for line in own)
    return ", ".join(f"{found[name]} {word}" for name, (_, word) in _MARKS.items() if found[name])


def _cell(line: Line, standings: Mapping[Key, Standing]) -> dict[str, str]:
    """What a cell of the table shows: a glyph, a word, and a class for its colour."""
    name = standings.get(line.key)
    if name is None:
        return {"glyph": "·", "word": "does not apply", "kind": "none", "more": ""}
    glyph, word = _MARKS[name]
    word = "blocked" if name == "failed" and line.verdict == "blocked" else word
    more = f"{line.cases}" + (f", {_units(line.worst)}" if line.worst else "")
    return {"glyph": glyph, "word": word, "kind": name, "more": more if line.cases else ""}


def _units(error: float) -> str:
    return "∞" if math.isinf(error) else f"{error:.2g}"
