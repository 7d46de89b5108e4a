"""The level and the result that lines make."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from conformance.certificate import Grade, certificate
from conformance.results import Finding, Line
from tests.test_matrix import bad, contracted
from tests.trial_results import line, results

OPEN = {"verdict": "not checked", "reason": "nothing to judge", "cases": 0, "worst": 0.0}


def unjudged(clause: str, status: str, **changes: object) -> Line:
    """A line of which nothing was judged, although it applies."""
    checks = (Finding("a", status), Finding("b", status))
    return line(clause=clause, checks=checks, **{**OPEN, **changes})


@pytest.mark.parametrize(
    ("lines", "waived", "level", "result"),
    [
        ([], [], "extended", "PASSED"),
        ([bad("BA-05")], [], "strict", "PASSED"),
        ([bad("MA-01")], [], "core", "PASSED"),
        ([bad("MA-01")], ["MA-01"], "extended", "WARNED"),
        ([bad("MA-01"), bad("MA-02")], ["MA-01"], "core", "PASSED"),
        ([bad("LA-02")], [], "none", "FAILED"),
        ([bad("LA-02")], ["LA-02"], "extended", "WARNED"),
        ([bad("LA-02"), bad("LA-03")], ["LA-02"], "none", "FAILED"),
        ([bad("LA-02", verdict="known")], [], "none", "FAILED"),
        ([bad("LA-02", verdict="blocked", blocked_by=("LA-01",))], [], "none", "FAILED"),
        ([line(clause="LA-02", complete=False)], [], "none", "FAILED"),
        ([line(clause="NP-07", applies=False, **OPEN)], [], "extended", "PASSED"),
        ([unjudged("LA-02", "unbuildable")], [], "none", "FAILED"),
        ([unjudged("LA-02", "refused")], [], "none", "FAILED"),
        ([unjudged("EN-04", "refused")], [], "none", "FAILED"),
        ([unjudged("EN-12", "empty")], [], "none", "FAILED"),
    ],
)
def test_the_level_is_that_of_the_worst_clause(
    lines: list[Line], waived: Collection[str], level: str, result: str
) -> None:
    """Nothing but a pass, a waiver, or what does not apply will do."""
    keys = {(clause, "step3", "float32") for clause in waived}
    found = certificate(results(lines=contracted(*lines)), keys)
    assert found.grades == {"step3": Grade(level, result)}
    assert found.result == result


@pytest.mark.parametrize(
    ("opened", "level"),
    [
        (unjudged("EN-04", "refused", family="step3p7", dtype="float16"), "extended"),
        (unjudged("EN-12", "empty", family="step3p7", dtype="float16"), "extended"),
        (unjudged("EN-07", "empty", family="step3p7", dtype="float16"), "none"),
        (unjudged("EN-12", "refused", family="step3p7", dtype="float16"), "none"),
    ],
)
def test_two_clauses_may_stay_open(opened: Line, level: str) -> None:
    """Where nobody could do better; the result says so."""
    found = certificate(results(lines=contracted(opened, family="step3p7")), ())
    result = "FAILED" if level == "none" else "WARNED"
    assert found.grades == {"step3p7": Grade(level, result)}


def test_every_line_that_applies_has_a_standing() -> None:
    """By its name: clause, family and dtype."""
    found = certificate(results(lines=contracted(bad("LA-02"))), ())
    assert "LA-02 step3 float32" in found.named("failed")
    assert len(found.named("passed", "failed")) == len(contracted())
