"""`python -m conformance diff`: what changed between two result files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.diff import changes, warnings
from conformance.result_file import write_results
from tests.conftest import Run
from tests.trial_results import finding, line, results


def test_verdicts_that_changed_come_first() -> None:
    """Then errors that moved by more than a factor of two; smaller moves are noise."""
    before = [line(worst=1.0), line(clause="LA-02", worst=1.0), line(clause="LA-03", worst=1.0)]
    after = [
        line(worst=2.5),
        line(clause="LA-02", worst=1.9),
        line(clause="LA-03", verdict="failed", checks=(finding(came="zeros"),)),
    ]
    found = changes(results(lines=before), results(lines=after))
    assert [(change.key[0], change.moved) for change in found] == [
        ("LA-03", False),
        ("LA-01", True),
    ]
    assert "zeros" in str(found[0])


def test_lines_of_one_file_alone_are_changes() -> None:
    """Another family, for one."""
    found = changes(results(lines=[line()]), results(lines=[line(), line(family="step3p7")]))
    assert [(change.key[1], change.before) for change in found] == [("step3p7", "absent")]


def test_an_error_that_becomes_infinite_moved() -> None:
    """And one that stays infinite did not."""
    finite, infinite = (results(lines=[line(worst=worst)]) for worst in (1.0, float("inf")))
    assert len(changes(finite, infinite)) == 1
    assert changes(infinite, infinite) == []


def test_other_settings_are_warned_of() -> None:
    """They make verdicts hard to compare."""
    found = list(warnings(results(), results(seed=1, profile="smoke")))
    assert sorted(found) == ["profile: standard -> smoke", "seed: 0 -> 1"]


def test_the_exit_status_says_whether_anything_changed(
    command: Callable[..., Run], tmp_path: Path
) -> None:
    """0 for nothing, 1 for something, 2 for a file that cannot be used."""
    write_results(results(lines=[line()]), tmp_path / "a.jsonl")
    write_results(results(lines=[line(verdict="known")]), tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl").write_text("{}")
    same, other, broken = (command("diff", "a.jsonl", f"{name}.jsonl") for name in "abc")
    assert (same.status, other.status, broken.status) == (0, 1, 2)
    assert "LA-01 step3 float32: passed -> known" in other.output
    assert "c.jsonl" in broken.output
    assert "Traceback" not in broken.output
