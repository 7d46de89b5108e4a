"""Result files: what `--results=FILE` writes, and what is read back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from conformance.contract import contract
from conformance.result_file import ResultsError, read_results, write_results
from strategies import load_case
from tests.conftest import ROOT, Run
from tests.trial_results import finding, line, results

Check = Callable[..., Run]

SMOKE = ("--profile=smoke", "--family=step3-vl-10b", "--clause=LA-02", "--clause=MA-03")


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    """The published schema, itself valid."""
    text = (ROOT / "conformance" / "results.schema.json").read_text(encoding="utf-8")
    Draft202012Validator.check_schema(json.loads(text))
    return Draft202012Validator(json.loads(text))


def objects(file: Path) -> list[dict[str, object]]:
    """The JSON objects of a result file."""
    return [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]


def test_a_run_writes_what_the_schema_says(
    check: Check, tmp_path: Path, schema: Draft202012Validator
) -> None:
    """With failures, infinities and clauses that were not checked, in two dtypes."""
    run = check(
        "thumbnail_first", *SMOKE, "--dtype=float32", "--dtype=float16", "--results=r.jsonl"
    )
    assert run.status == 1, run.output
    written = objects(tmp_path / "r.jsonl")
    assert [list(schema.iter_errors(value)) for value in written] == [[]] * len(written)


def test_every_clause_family_and_dtype_stands_once(check: Check, tmp_path: Path) -> None:
    """What was not checked too, with its reason."""
    check("right", *SMOKE, "--family=step3", "--results=r.jsonl")
    found = read_results(tmp_path / "r.jsonl")
    assert sorted(line.key for line in found.lines) == sorted(
        (clause.id, family, "float32")
        for clause in contract().clauses
        for family in ("step3-vl-10b", "step3")
    )
    reasons = {line.clause: line.reason for line in found.lines if line.family == "step3"}
    assert reasons["LA-02"] == ""
    assert reasons["LA-01"] == "not asked for"
    assert reasons["EN-07"] == "step3 has none"


def test_two_workers_write_the_same_bytes(check: Check, tmp_path: Path) -> None:
    """Neither their number nor their order shows."""
    check("thumbnail_first", *SMOKE, "--results=r.jsonl")
    alone = (tmp_path / "r.jsonl").read_bytes()
    check("thumbnail_first", *SMOKE, "--results=r.jsonl", "-n2")
    assert (tmp_path / "r.jsonl").read_bytes() == alone


def test_a_failing_case_lies_beside_the_file(check: Check, tmp_path: Path) -> None:
    """It is named relative to it and is the case of the digest; an earlier run's are gone."""
    check("height_first", "--profile=smoke", "--clause=EN-07", "--results=out/r.jsonl")
    check("thumbnail_first", *SMOKE, "--results=out/r.jsonl")
    found = read_results(tmp_path / "out" / "r.jsonl")
    (failure,) = [finding for line in found.lines for finding in line.failures]
    case, notes = load_case(tmp_path / "out" / failure.file)
    assert case.digest == failure.digest
    assert notes["check"] == failure.check
    assert [file.name for file in (tmp_path / "out" / "r-cases").iterdir()] == [
        Path(failure.file).name
    ]


def test_the_header_and_the_footer_say_what_was_done(check: Check, tmp_path: Path) -> None:
    """Implementation, options, versions, exit status."""
    run = check("thumbnail_first", *SMOKE, "--seed=7", "--no-known", "--results=r.jsonl")
    found = read_results(tmp_path / "r.jsonl")
    header, footer = found.header, found.footer
    assert header.implementation.name == "thumbnail-first"
    assert (header.settings.seed, header.settings.examples) == (7, 2)
    assert header.settings.known == "none"
    assert header.settings.clauses == ("LA-02", "MA-03")
    assert {"torch", "numpy"} <= set(header.environment.packages)
    assert footer.status == run.status == 1
    assert (footer.verdicts["failed"], footer.verdicts["passed"]) == (1, 1)


def test_the_header_of_an_isolated_run_is_about_the_other_process(
    check: Check, tmp_path: Path, schema: Draft202012Validator
) -> None:
    """Where the implementation ran, and beside it what the suite ran on."""
    run = check(
        "right",
        "--clause=NP-01",
        "--profile=smoke",
        f"--python={sys.executable}",
        "--family=step3",
        "--results=r.jsonl",
    )
    assert run.status == 0, run.output
    assert not list(schema.iter_errors(objects(tmp_path / "r.jsonl")[0]))
    found = read_results(tmp_path / "r.jsonl").header.environment
    assert found.near is not None
    assert found.packages["torch"] == found.near["torch"]


def test_a_known_failure_that_is_gone_is_a_complaint(check: Check, tmp_path: Path) -> None:
    """The footer says why a run without failed clauses failed."""
    known = tmp_path / "known.toml"
    known.write_text(
        '[[known]]\nreleases = ">=1"\nfamilies = ["step3-vl-10b"]\nclauses = ["LA-02"]\n'
        'what = "thumbnails first"\nlink = "unreported"\n'
    )
    check("right", *SMOKE, f"--known={known}", "--results=r.jsonl")
    footer = read_results(tmp_path / "r.jsonl").footer
    assert footer.status == 1
    assert "LA-02" in footer.complaints[0]


def test_what_cannot_be_built_is_a_reason(check: Check, tmp_path: Path) -> None:
    """The file is written although there was nothing to check."""
    run = check("unbuildable", *SMOKE, "--results=r.jsonl")
    found = read_results(tmp_path / "r.jsonl")
    assert run.status == found.footer.status == 4
    assert {line.verdict for line in found.lines} == {"not checked"}
    assert any("no kernel for this machine" in line.reason for line in found.lines)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--results=r.jsonl", "--failures=here"), "leave --failures out"),
        (("--results=.",), "is a folder"),
        (("--save-witnesses", "--no-known"), "leave --no-known out"),
    ],
)
def test_options_that_cannot_be_are_refused(
    check: Check, options: tuple[str, ...], word: str
) -> None:
    """One line and status 4."""
    run = check("right", *SMOKE, *options)
    assert run.status == 4
    assert word in run.output


def test_what_is_written_is_read_back(tmp_path: Path, schema: Draft202012Validator) -> None:
    """Infinite errors and characters of any kind too."""
    failure = finding(error=float("inf"), came='<b> & "quotes"\nand a line, ψ')
    written = results(lines=[line(verdict="failed", worst=float("inf"), checks=(failure,))])
    file = tmp_path / "r.jsonl"
    write_results(written, file)
    assert read_results(file) == written
    assert all(schema.is_valid(value) for value in objects(file))


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda lines: lines[:-1], "cut short"),
        (lambda lines: [*lines[:-1], lines[-1][:40]], "not JSON"),
        (lambda lines: lines[:1] + lines[2:], "not 2"),
        (lambda lines: [lines[0], lines[1], lines[1], lines[-1]], "more than once"),
        (lambda lines: ["[]", *lines], "not an object"),
        (lambda lines: [lines[0].replace("results-1", "results-9"), *lines[1:]], "format"),
        (lambda lines: [lines[0], lines[1].replace('"worst"', '"best"'), *lines[2:]], "worst"),
        (lambda lines: [lines[0], lines[1].replace("passed", "fine"), *lines[2:]], "fine"),
        (lambda lines: [lines[0], lines[0], *lines[2:]], "'header'"),
        (lambda _lines: [], "no result file"),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, damage: Callable[[list[str]], list[str]], word: str
) -> None:
    """The message says which file and what is wrong with it."""
    file = tmp_path / "r.jsonl"
    write_results(results(lines=[line(), line(clause="LA-02")]), file)
    file.write_text("\n".join(damage(file.read_text(encoding="utf-8").splitlines())))
    with pytest.raises(ResultsError, match=word) as raised:
        read_results(file)
    assert "r.jsonl" in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """As any other that cannot be read."""
    with pytest.raises(ResultsError, match=r"missing\.jsonl"):
        read_results(tmp_path / "missing.jsonl")
