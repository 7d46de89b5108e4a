"""The matrix of many result files: page, Markdown and badge."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from conformance.contract import contract
from conformance.matrix import Matrix, read_matrix, standing
from conformance.page import Place, badge, markdown, page
from conformance.result_file import ResultsError, write_results
from conformance.results import KnownFailure, Line, Results
from reference import FAMILIES
from tests.conftest import Run
from tests.trial_results import KNOWN, finding, line, results

EVIL = '<script>alert("x")</script>|`*_[&'


class Elements(HTMLParser):
    """The elements of a page, as tags with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: D102
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:  # noqa: D102
        self.text += data

    def all(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [str(attributes[name]) for _, attributes in self.found if name in attributes]


def bad(clause: str = "LA-02", **changes: object) -> Line:
    """A clause that failed."""
    values = {"verdict": "failed", "worst": 1e6, "checks": (finding(error=1e6),), **changes}
    return line(clause=clause, **values)


def contracted(*lines: Line, family: str = "step3") -> list[Line]:
    """A line for every clause of the contract, those given as they are."""
    given = {line.clause: line for line in lines}
    return [
        given.get(clause.id, line(clause=clause.id, family=family)) for clause in contract().clauses
    ]


def of(folder: Path, *found: Results) -> Matrix:
    """The matrix of some results, filled up to the whole contract, written and read back."""
    for place, one in enumerate(found):
        lines = [
            line
            for family in one.header.settings.families
            for line in contracted(*(o for o in one.lines if o.family == family), family=family)
        ]
        write_results(Results.of(one.header, lines, 0), folder / f"{place}.jsonl")
    return read_matrix(folder)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A page beside the result files."""
    return Place(tmp_path, "2026-12-02")


def test_columns_are_sorted_by_release_not_by_text(tmp_path: Path) -> None:
    """0.10 follows 0.9; implementations and families stay together."""
    lines = [line(family=family) for family in ("step3p7", "step3")]
    versions = ("0.10.0", "nightly", "0.9.1", "0.10.0.post1")
    matrix = of(
        tmp_path,
        *(results("b", version, lines) for version in versions),
        results("a", "7", lines[:1]),
    )
    ordered = ["0.9.1", "0.10.0", "0.10.0.post1", "nightly"]
    assert [(c.implementation, c.family, c.version) for c in matrix.columns] == [
        ("a", "step3p7", "7"),
        *(("b", family, version) for family in ("step3", "step3p7") for version in ordered),
    ]


def test_a_failure_names_its_first_and_last_release(tmp_path: Path) -> None:
    """A release in between that is good splits it in two."""
    verdicts = {"1.0": True, "1.1": True, "1.2": False, "1.10": True, "2.0": False}
    matrix = of(
        tmp_path,
        *(
            results(version=version, lines=[bad() if is_bad else line(clause="LA-02")])
            for version, is_bad in verdicts.items()
        ),
    )
    (failure,) = matrix.failures
    assert failure.spans == [("1.0", "1.1"), ("1.10", "1.10")]
    assert not failure.lasts


def test_another_reason_is_another_failure(tmp_path: Path, place: Place) -> None:
    """No release is said to fail for the reason of another."""
    reasons = {"1.0": "no attribute", "1.1": "no attribute", "1.2": "other rows"}
    matrix = of(
        tmp_path,
        *(
            results(version=version, lines=[bad(known=(KnownFailure(what, "unreported", "==1"),))])
            for version, what in reasons.items()
        ),
    )
    assert [(failure.known, failure.spans) for failure in matrix.failures] == [
        ("no attribute", [("1.0", "1.1")]),
        ("other rows", [("1.2", "1.2")]),
    ]
    text = markdown(matrix, place)
    assert "| 1.0 to 1.1 | LA-02 | no attribute |" in text
    assert "| 1.2 | LA-02 | other rows |" in text


def test_every_distinct_case_of_a_failure_is_kept(tmp_path: Path) -> None:
    """Releases that fail the same case share it; another kind of failure stands apart."""
    raised = {"kind": "TypeError", "came": "TypeError: no"}
    findings = {
        "1.0": finding(digest="a" * 32, **raised),
        "1.1": finding(digest="b" * 32),
        "1.2": finding(digest="c" * 32),
        "1.3": finding(digest="c" * 32),
    }
    matrix = of(
        tmp_path,
        *(results(version=v, lines=[bad(checks=(f,))]) for v, f in findings.items()),
    )
    (failure,) = matrix.failures
    assert [evidence.releases for evidence in failure.evidence] == [("1.1", "1.2", "1.3"), ("1.0",)]
    assert [releases for _, _, releases in failure.evidence[0].cases] == [("1.2", "1.3"), ("1.1",)]


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ((), "passed"),
        ((bad(verdict="known", known=(KNOWN,)),), "known"),
        ((bad(), bad("LA-03", verdict="known")), "failed"),
        ((bad(verdict="blocked", blocked_by=("LA-03",)),), "failed"),
        ((line(clause="LA-02", verdict="not checked", reason="x", complete=False),), "incomplete"),
        ((line(clause="LA-02", complete=False),), "incomplete"),
        ((line(clause="EN-07", verdict="not checked", reason="x", applies=False),), "passed"),
    ],
)
def test_a_level_is_passed_only_if_all_that_applies_was_checked(
    tmp_path: Path, lines: Sequence[Line], word: str
) -> None:
    """What does not apply is no hole; what was left out is."""
    matrix = of(tmp_path, results(lines=contracted(*lines)))
    assert standing(matrix.columns[0], "core").word == word


def test_every_mark_of_a_failure_leads_to_it(tmp_path: Path, place: Place) -> None:
    """The anchors are there, once each, and every cell has its verdict in words."""
    matrix = of(
        tmp_path,
        results(version="1", lines=contracted(bad(), bad("EN-07"))),
        results(version="2", lines=contracted(bad())),
    )
    elements = Elements(page(matrix, place))
    targets = elements.all("id")
    links = [href[1:] for href in elements.all("href") if href.startswith("#")]
    assert len(links) == 3
    assert set(links) <= set(targets)
    assert len(targets) == len(set(targets))


def test_a_page_needs_no_script_and_nothing_from_elsewhere(tmp_path: Path, place: Place) -> None:
    """Only links to reports leave it."""
    elements = Elements(page(of(tmp_path, results(lines=contracted(bad()))), place))
    tags = {tag for tag, _ in elements.found}
    assert not tags & {"script", "link", "img", "iframe"}
    assert elements.all("src") == []


def test_whatever_results_say_is_text(tmp_path: Path, place: Place) -> None:
    """Names, messages and links of a stranger's file make no markup."""
    known = KnownFailure(EVIL, f"javascript:{EVIL}", ">=1")
    failure = finding(came=EVIL, expected=EVIL, case=EVIL, file=f"javascript:{EVIL}", kind=EVIL)
    lines = contracted(bad(checks=(failure,), verdict="known", known=(known,)))
    matrix = of(tmp_path, results(name=EVIL, version="1", lines=lines))
    elements = Elements(page(matrix, place))
    assert "script" not in {tag for tag, _ in elements.found}
    assert EVIL in elements.text
    assert not any(href.startswith("javascript:") for href in elements.all("href"))
    text = markdown(matrix, place)
    assert "<script" not in text
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in text.splitlines() if row[:1] == "|"}
    assert widths == {6, 7}  # its two tables
    ElementTree.fromstring(badge(matrix))


def test_clauses_that_fail_alike_share_a_row(tmp_path: Path, place: Place) -> None:
    """Of one entry and in the same releases; another release or entry has a row of its own."""
    other = KnownFailure("another", "unreported", ">=1")
    known = {"verdict": "known", "known": (KNOWN,)}
    matrix = of(
        tmp_path,
        results(version="1", lines=[bad(**known), bad("LA-03", **known), bad("BA-02", **known)]),
        results(version="2", lines=[bad(**known), bad("LA-03", **known)]),
        results(version="3", lines=[bad("EN-07", verdict="known", known=(other,))]),
    )
    rows = [row.split(" | ") for row in markdown(matrix, place).splitlines() if KNOWN.what in row]
    assert [(row[2], row[3]) for row in rows] == [("1 to 2", "LA-02, LA-03"), ("1", "BA-02")]


def test_a_page_leads_to_the_saved_cases(tmp_path: Path) -> None:
    """Links are relative to the page, wherever it stands."""
    (tmp_path / "r-cases").mkdir()
    (tmp_path / "r-cases" / "case.safetensors").touch()
    matrix = of(tmp_path, results(lines=contracted(bad())))
    folder = tmp_path / "docs" / "deep"
    links = [unquote(href) for href in Elements(page(matrix, Place(folder, "today"))).all("href")]
    assert "../../r-cases/case.safetensors" in links


def test_errors_are_plotted_with_the_limits(tmp_path: Path, place: Place) -> None:
    """A dot for each column, a higher one for a larger error, infinity at the edge."""
    errors = {"1": 0.5, "2": 7.0, "3": float("inf")}
    matrix = of(
        tmp_path,
        *(
            results(version=v, lines=contracted(line(clause="EN-07", worst=e)))
            for v, e in errors.items()
        ),
    )
    drawings = re.findall(r"<svg.*?</svg>", page(matrix, place), re.DOTALL)
    (drawing,) = [found for found in drawings if "∞" in found]
    (dots,) = [p.get("d", "") for p in ElementTree.fromstring(drawing) if p.get("class") == "good"]
    heights = [float(height) for height in re.findall(r"M\S+ (\S+)h0", dots)]
    assert heights == sorted(heights, reverse=True)
    assert len(set(heights)) == 3


def test_a_matrix_of_many_releases_stays_small(tmp_path: Path, place: Place) -> None:
    """25 releases in three families, a third of the clauses bad, each with a case of its own."""
    some = [clause.id for clause in contract().clauses][::3]

    def failure(release: int) -> tuple[object, ...]:
        long = {"expected": "e" * 80, "came": "c" * 120, "case": "x" * 250}
        return (finding(digest=f"{release:032x}", file="f" * 80, **long),)

    for release in range(25):
        lines = [
            line
            for family in FAMILIES
            for line in contracted(
                *(bad(c, family=family, checks=failure(release)) for c in some), family=family
            )
        ]
        write_results(results(version=f"1.{release}", lines=lines), tmp_path / f"{release}.jsonl")
    assert len(page(read_matrix(tmp_path), place).encode()) < 1_000_000


@pytest.mark.parametrize(
    ("lines", "message"),
    [((), "core passed"), ((bad(),), "core failed"), ((bad(verdict="known"),), "known failures")],
)
def test_a_badge_says_how_one_release_stands(
    tmp_path: Path, lines: Sequence[Line], message: str
) -> None:
    """In words, not by its colour alone."""
    svg = ElementTree.fromstring(badge(of(tmp_path, results(lines=contracted(*lines)))))
    assert message in svg.get("aria-label", "")


def test_a_badge_counts_several_releases(tmp_path: Path) -> None:
    """Those that pass core, of all."""
    found = [
        results(version="1", lines=contracted()),
        results(version="2", lines=contracted(bad())),
    ]
    assert "1 of 2 pass core" in badge(of(tmp_path, *found))


def test_a_file_without_a_clause_is_refused(tmp_path: Path) -> None:
    """The clause is named."""
    write_results(results(lines=contracted()[1:]), tmp_path / "r.jsonl")
    with pytest.raises(ResultsError, match="NP-01"):
        read_matrix(tmp_path)


def test_two_files_of_one_release_are_refused(tmp_path: Path) -> None:
    """Both are named."""
    with pytest.raises(ResultsError, match=r"0\.jsonl and .*1\.jsonl"):
        of(tmp_path, results(lines=[line()]), results(lines=[line()]))


def test_the_command_writes_page_table_and_badge(
    check: Callable[..., Run], command: Callable[..., Run], tmp_path: Path
) -> None:
    """From the results of real runs."""
    for miniature in ("thumbnail_first", "right"):
        run = ("--profile=smoke", "--family=step3", "--clause=LA-02")
        check(miniature, *run, f"--results=out/{miniature}.jsonl")
    made = command(
        "matrix", "out", "--out=page.html", "--markdown=table.md", "--badge=badge.svg", "--date=D"
    )
    assert made.status == 0, made.output
    elements = Elements((tmp_path / "page.html").read_text(encoding="utf-8"))
    links = [unquote(href) for href in elements.all("href") if href.endswith(".safetensors")]
    assert links
    assert all((tmp_path / link).is_file() for link in links)
    line = re.search(r"python -m conformance (replay \S+ \S+)", elements.text)
    assert line is not None
    assert command(*line[1].split()).status == 1
    assert "| thumbnail-first |" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_an_empty_folder_is_refused(command: Callable[..., Run], tmp_path: Path) -> None:
    """One line, status 2."""
    run = command("matrix", str(tmp_path))
    assert run.status == 2
    assert "there is no result file" in run.output
