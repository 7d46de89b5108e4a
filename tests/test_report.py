"""The report of a certificate: verdict first, nothing but text from elsewhere."""

from __future__ import annotations

import datetime
from xml.etree import ElementTree

import pytest

from conformance.artifact import Artifact
from conformance.contract import contract
from conformance.error_plot import error_plot
from conformance.report import report
from conformance.results import Line
from conformance.waivers import Waiver
from tests.test_matrix import EVIL, Elements, bad, contracted
from tests.trial_results import finding, results

SUBJECT = Artifact("mine", "1.0", "source", 1, "0" * 64)
ENVIRONMENT = {
    "python": "CPython 3.11.9",
    "platform": "Linux",
    "processor": EVIL,
    "device": "cpu",
    "driver": {"cuda": EVIL},
    "variables": {"OMP_NUM_THREADS": EVIL},
    "packages": {EVIL: EVIL},
    "numerics": {"threads": 1},
}


def waiver(clause: str, text: str = "mended in 1.1") -> Waiver:
    """A waiver of the failure that `bad` makes of a clause."""
    day = datetime.date(2100, 1, 1)
    return Waiver(clause, "step3", "float32", "cpu", "==1.0", text, text, text, day, ("0" * 32,))


def page(*lines: Line, waivers: tuple[Waiver, ...] = (), name: str = "mine") -> Elements:
    """The report of some lines, all others passed."""
    found = results(name, lines=contracted(*lines))
    return Elements(report(found, waivers, SUBJECT, "0123456789abcdef", ENVIRONMENT))


@pytest.mark.parametrize(
    ("lines", "waivers", "words"),
    [
        ((), (), "✓ step3: conformant at level extended"),
        ((bad("LA-02"),), (), "✗ step3: not conformant, core is not reached"),
        ((bad("MA-01"),), (), "✓ step3: conformant at level core"),
        (
            (bad("LA-02"),),
            (waiver("LA-02"),),
            "✓ step3: conformant at level extended, with exceptions",
        ),
    ],
)
def test_the_verdict_stands_first_in_words(
    lines: tuple[Line, ...], waivers: tuple[Waiver, ...], words: str
) -> None:
    """Before any clause, and not by its colour alone."""
    text = page(*lines, waivers=waivers).text
    assert words in text
    assert text.index(words) < text.index("NP-01")


def test_every_clause_and_every_waiver_is_shown() -> None:
    """With mark, reason, owner and day."""
    text = page(bad("LA-02"), waivers=(waiver("LA-02"),)).text
    assert all(clause.id in text for clause in contract().clauses)
    assert "◆ waived" in text
    assert "mended in 1.1" in text
    assert "2100-01-01" in text


def test_whatever_a_run_said_is_text() -> None:
    """Names, messages, packages and waivers make no markup, and nothing is loaded."""
    failure = finding(came=EVIL, expected=EVIL, where=EVIL, case=EVIL, file=EVIL, sentence=EVIL)
    elements = page(bad(checks=(failure,)), waivers=(waiver("LA-02", EVIL),), name=EVIL)
    assert not {tag for tag, _ in elements.found} & {"script", "link", "img", "iframe", "a"}
    assert elements.all("src") == []
    assert EVIL in elements.text


def test_errors_are_drawn_with_a_shape_for_each_verdict() -> None:
    """One SVG, the same for the same results; none if nothing was measured."""
    found = results(lines=contracted(bad("EN-07")))
    drawn = error_plot(found)
    assert drawn == error_plot(found)
    texts = "".join(ElementTree.fromstring(drawn).itertext())
    assert all(word in texts for word in ("EN-07", "passed", "failed", "limit"))
    quiet = [Line(**{**vars(line), "worst": 0.0}) for line in contracted()]
    assert error_plot(results(lines=quiet)) == ""
