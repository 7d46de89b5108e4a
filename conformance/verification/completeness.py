"""Whether results are complete and follow from what each check found."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping

from conformance import package
from conformance.check import Check, all_checks
from conformance.contract import Clause, contract
from conformance.corpus import sharp_cases
from conformance.diagnosis import Failure, explained
from conformance.dtypes import DTYPES
from conformance.results import VERDICTS, Finding, Key, Line, Results, totals
from conformance.rules import Breach
from conformance.search import doubt
from conformance.waivers import device_type


def check_lines(results: Results, places: Mapping[Key, int]) -> Iterator[Breach]:
    """Every line there, once, and as the contract has it; then the footer."""
    settings = results.header.settings
    expected = [
        (clause.id, family, dtype)
        for clause in contract().clauses
        for family in settings.families
        for dtype in settings.dtypes
    ]
    asked = set(expected)
    found = [line.key for line in results.lines]
    for key in (key for key in expected if key not in places):
        yield _breach("CT-02", f"there is no line for {' '.join(key)}", 0)
    for key in (key for key in found if key not in asked):
        yield _breach("CT-02", f"nothing asked for {' '.join(key)}", places[key])
    if sorted(found) == sorted(expected) and found != expected:
        place, key = next((i, k) for i, k in enumerate(found, 2) if k != expected[i - 2])
        yield _breach("CT-02", f"{' '.join(key)} is out of its place", place)
    for line in results.lines:
        if line.key in asked:
            for rule, message in _line_breaches(results, line):
                yield _breach(rule, f"{' '.join(line.key)}: {message}", places[line.key])


def check_verdicts(results: Results, places: Mapping[Key, int]) -> Iterator[Breach]:
    """Every verdict, with its causes, from what the checks found."""
    settings = results.header.settings
    for family in settings.families:
        for dtype in settings.dtypes:
            own = [line for line in results.lines if (line.family, line.dtype) == (family, dtype)]
            causes = explained(_failures(own))
            for line in own:
                right = _verdict(line, causes)
                if (line.verdict, line.blocked_by) != right:
                    by = f" by {', '.join(right[1])}" if right[1] else ""
                    message = f"{' '.join(line.key)}: its checks make it {right[0]}{by}"
                    yield _breach("CT-05", message, places[line.key])


def check_footer(results: Results) -> Iterator[Breach]:
    """The counts of the footer, and what it complains of."""
    place = len(results.lines) + 2
    counts = Counter(line.verdict for line in results.lines)
    if results.footer.verdicts != {verdict: counts[verdict] for verdict in VERDICTS}:
        yield _breach("CT-07", "its counts are not those of the lines", place)
    for complaint in results.footer.complaints:
        yield _breach("CT-08", complaint, place)


def _line_breaches(results: Results, line: Line) -> Iterator[tuple[str, str]]:
    clause = contract()[line.clause]
    interface = results.header.implementation.interface
    why = clause.inapplicable(line.family, interface, device_type(results))
    of_contract = (clause.level, why is None, clause.level == "core")
    if (line.level, line.applies, line.required) != of_contract:
        yield "CT-03", "its level, or whether it applies or is required, is not the contract's"
    if why is not None:
        if (line.verdict, line.reason) != ("not checked", why):
            yield "CT-03", f"it does not apply: {why}"
        return
    names = [check.name for check in _checks(clause, line.family)]
    if [finding.check for finding in line.checks] != names or not line.complete:
        yield "CT-04", f"it needs the checks {', '.join(names)}"
    if (line.cases, line.left_out, line.worst) != totals(line.checks) or line.known:
        yield "CT-05", "its numbers are not those of its checks"
    for finding in line.checks:
        yield from _finding_breaches(results, line, finding)


def _finding_breaches(results: Results, line: Line, finding: Finding) -> Iterator[tuple[str, str]]:
    check = _by_name().get(finding.check)
    most = results.header.settings.examples * (check.effort if check else 1)
    most += len(sharp_cases(finding.check, line.family, DTYPES[line.dtype]))
    excused = finding.status == "known" or bool(finding.witness)
    if excused or finding.cases > most or (finding.bad and not finding.cases):
        yield "CT-05", f"{finding.check}: {finding.status} with {finding.cases} cases"
    least = results.header.settings.examples
    if finding.status == "passed" and finding.cases + finding.left_out < least:
        yield "CT-05", f"{finding.check}: it passed {finding.cases} cases, of {least} at least"
    # Twice the limit between two results of one implementation, both of which are noisy.
    # A doubtful error passes if derived cases do.
    limit = 2 * results.header.limits[line.dtype]["row"] * doubt(DTYPES[line.dtype])
    if finding.units > limit:
        yield "CT-06", f"{finding.check}: what passed is {finding.units:.3g} noise units off"


def _failures(lines: list[Line]) -> list[Failure]:
    """The failed checks of a family and dtype, once each, as the gating looks at them."""
    found = {}
    for line in lines:
        for finding in line.failures:
            check = _by_name().get(finding.check)
            if check is not None:
                after = check.behind(stateful=finding.stateful)
                value = finding.kind == "values" or finding.stateful
                found[check.name] = Failure(check.clauses, value, after)
    return list(found.values())


def _verdict(line: Line, causes: Mapping[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    statuses = {finding.status for finding in line.checks}
    if line.failures:
        own = causes.get(line.clause, ())
        return ("blocked" if own else "failed"), own
    passed = "passed" in statuses and "abandoned" not in statuses
    return ("passed" if passed else "not checked"), ()


def _checks(clause: Clause, family: str) -> list[Check]:
    return [check for check in _by_name().values() if check.covers(clause.id, family)]


@functools.cache
def _by_name() -> dict[str, Check]:
    return {check.name: check for check in all_checks()}


def _breach(rule: str, message: str, place: int) -> Breach:
    return Breach(rule, message, package.RESULTS, place)
