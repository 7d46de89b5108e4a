"""`pytest conformance --impl=NAME`, run as its users run it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.contract import contract
from tests.conftest import MINIATURES, Run

Check = Callable[..., Run]

SMOKE = ("--profile=smoke", "--family=step3-vl-10b")

KNOWN = """
[[known]]
releases = ">=1"
families = ["step3-vl-10b"]
clauses = [{clauses}]
what = "thumbnails stand first"
link = "unreported"
"""


def test_a_right_encoder_passes_every_level(check: Check) -> None:
    """The reference, by another name, passes core, strict and extended."""
    run = check("right", "--level=extended", *SMOKE)
    assert run.status == 0, run.output
    unchecked = {"NP-07", "PP-04", "PP-05"}
    assert run.marked("passed") == {clause.id for clause in contract().clauses} - unchecked


def test_a_right_encoder_written_another_way_passes(check: Check) -> None:
    """Whole batches and fused attention are as good."""
    run = check("batched", "--level=strict", "--profile=smoke", "--family=step3")
    assert run.status == 0, run.output
    assert not run.marked("failed")


@pytest.mark.parametrize(
    ("miniature", "failing"),
    [
        ("thumbnail_first", {"LA-02"}),
        ("height_first", {"EN-07"}),
        ("one_item", {"LA-03", "LA-04", "BA-02"}),
    ],
)
def test_a_wrong_encoder_fails_at_the_clauses_that_name_it(
    check: Check, miniature: str, failing: set[str]
) -> None:
    """Those clauses fail, and no others but ones that they block."""
    run = check(miniature, *SMOKE)
    assert run.status == 1
    assert run.marked("failed") == failing, run.output


def test_zeros_of_the_right_shape_fail(check: Check) -> None:
    """A result that does not depend on the picture is named as such."""
    run = check("zeros", *SMOKE, "--clause=EN-00", "--clause=LA-01", "--clause=EN-11")
    assert run.marked("failed") == {"EN-00"}, run.output
    assert run.marked("blocked") == {"EN-11"}, run.output


def test_strict_failures_count_only_at_the_strict_level(check: Check) -> None:
    """By default strict clauses are checked and shown, and the exit status follows core."""
    options = (*SMOKE, "-k", "MA-09 or LA-01")
    lenient, strict = (
        check("integer_pixels", *options),
        check("integer_pixels", *options, "--level=strict"),
    )
    assert lenient.marked("failed") == strict.marked("failed") == {"MA-09"}
    assert (lenient.status, strict.status) == (0, 1)


def test_messages_count_only_when_asked_for(check: Check) -> None:
    """A ValueError will do, unless `--error-match=message` asks for its text."""
    options = (*SMOKE, "--clause=NP-01")
    assert check("messages", *options).status == 0
    assert check("messages", *options, "--error-match=message").status == 1


def test_two_workers_give_the_same_table(check: Check) -> None:
    """Xdist changes neither verdicts nor numbers."""
    options = (*SMOKE, "--clause=LA-02", "--clause=EN-01", "--clause=NP-05", "--clause=MA-03")
    alone, shared = check("thumbnail_first", *options), check("thumbnail_first", *options, "-n2")
    assert alone.table == shared.table
    assert len(alone.table) == 4
    assert alone.status == shared.status == 1


def test_the_same_seed_gives_the_same_table(check: Check) -> None:
    """Cases and largest errors repeat."""
    options = (*SMOKE, *(f"--clause=EN-0{clause}" for clause in (1, 3, 7, 8, 9)))
    one, again = (check("batched", *options, "--seed=3") for _ in range(2))
    assert one.table == again.table
    assert len(one.table) == 5


def test_a_failure_is_replayed_from_its_file(
    check: Check, command: Callable[..., Run], tmp_path: Path
) -> None:
    """The printed line fails again with the wrong encoder and passes with the right one."""
    run = check("thumbnail_first", *SMOKE, "--clause=LA-02")
    line = next(line for line in run.output.splitlines() if line.startswith("  replay"))
    _, _, _, *arguments = line.split()
    assert arguments[0] == "conformance"
    assert len(list((tmp_path / "conformance-failures").iterdir())) == 1
    again = command(*arguments[1:])
    assert again.status == 1
    assert "thumbnail (row" in again.output
    right = command(*arguments[1:-1], f"--impl={MINIATURES}:right")
    assert right.status == 0, right.output


def test_a_failure_takes_at_most_ten_lines(check: Check) -> None:
    """From the head to the line that replays it."""
    run = check("thumbnail_first", *SMOKE, "--clause=LA-02")
    lines = run.output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("LA-02 (core)"))
    assert any(line.startswith("  replay") for line in lines[start : start + 10])


def known_file(folder: Path, *clauses: str) -> str:
    """A file that says that some clauses are known to fail."""
    file = folder / "known.toml"
    file.write_text(KNOWN.format(clauses=", ".join(f'"{clause}"' for clause in clauses)))
    return f"--known={file}"


def test_a_known_failure_does_not_fail_the_run(check: Check, tmp_path: Path) -> None:
    """It is counted as known; without the file it fails."""
    known = known_file(tmp_path, "LA-02")
    run = check("thumbnail_first", *SMOKE, "--clause=LA-02", known)
    assert run.status == 0, run.output
    assert run.marked("known") == {"LA-02"}
    assert check("thumbnail_first", *SMOKE, "--clause=LA-02", known, "--no-known").status == 1


def test_a_known_failure_that_no_longer_occurs_fails_the_run(check: Check, tmp_path: Path) -> None:
    """The line says which entry to remove."""
    run = check("right", *SMOKE, "--clause=LA-02", known_file(tmp_path, "LA-02"))
    assert run.status == 1
    assert "LA-02 step3-vl-10b float32 is a known failure" in run.output


@pytest.mark.parametrize(
    ("miniature", "options", "word"),
    [
        ("right", ("--impl=nothing",), "nothing"),
        ("right", ("--impl=no_such_module:x",), "no_such_module"),
        ("right", ("--impl=no_such_file.py:x",), "no_such_file.py"),
        ("not_an_implementation", (), "not an implementation"),
        ("absent", (), "absent"),
        ("one_family", ("--family=step3",), "step3"),
        ("right", ("--device=cuda:99",), "cuda:99"),
        ("right", ("--device=toaster",), "toaster"),
        ("right", ("--clause=XX-01",), "XX-01"),
        ("right", ("--known=missing.toml",), "missing.toml"),
        ("unbuildable", ("--clause=LA-01", "--family=step3"), "no kernel for this machine"),
    ],
)
def test_what_cannot_be_checked_is_one_line_and_status_4(
    check: Check, miniature: str, options: tuple[str, ...], word: str
) -> None:
    """The line names the value; there is no traceback."""
    run = check(miniature, *options)
    assert run.status == 4, run.output
    assert "Traceback" not in run.output
    assert len([line for line in run.output.splitlines() if word in line]) == 1, run.output


def test_a_known_failure_of_an_unknown_clause_is_refused(check: Check, tmp_path: Path) -> None:
    """A file that names a clause that the contract does not have ends the run."""
    run = check("right", *SMOKE, known_file(tmp_path, "XX-99"))
    assert run.status == 4
    assert "XX-99" in run.output


def test_a_callable_gives_an_implementation(check: Check) -> None:
    """The attribute may be a function without arguments."""
    assert check("made", *SMOKE, "--clause=LA-05").status == 0


def test_what_was_not_checked_is_named(check: Check) -> None:
    """Clauses that need an accelerator stand below the table, with the reason."""
    run = check("right", *SMOKE, "--clause=PP-04", "--clause=LA-01")
    (line,) = [line for line in run.output.splitlines() if line.startswith("not checked")]
    assert "PP-04" in line
    assert "LA-01" not in line


def test_the_commands_list_clauses_and_implementations(command: Callable[..., Run]) -> None:
    """Every clause with its checks; every built-in implementation, installed or not."""
    clauses, implementations = command("clauses"), command("implementations")
    assert "WE-03" in clauses.output
    assert "la_02_patches_before_the_thumbnail" in clauses.output
    assert "reference: " in implementations.output
    assert clauses.status == implementations.status == 0
