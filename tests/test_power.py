"""Every planted fault is named by its clause; see `python -m conformance power`."""

from __future__ import annotations

import dataclasses

import pytest

from conformance.check import all_checks
from conformance.contract import contract
from conformance.power import Subject, examine, in_one_family
from tests.faults import FAULTS
from tests.harmless import DIFFERENCES

CATALOGUE = "tests.faults:FAULTS"

# A fault is tried in one of its families and dtypes here; the command tries all.
SUBJECTS = in_one_family(
    [
        Subject(CATALOGUE, fault.name, family, dtype, "smoke", quick=True)
        for fault in FAULTS
        for dtype in [str(fault.dtypes[0]).removeprefix("torch.")]
        for family in fault.families
    ]
)


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_fault_is_named_by_its_clause(subject: Subject) -> None:
    """Two cases a check are enough."""
    found = examine(subject)
    assert found.named, found


def test_every_clause_that_a_cpu_can_check_has_a_fault() -> None:
    """Only clauses that need an accelerator have none."""
    named = {fault.clause for fault in FAULTS}
    assert {c.id for c in contract().clauses if c.id not in named} == {"NP-07", "PP-04", "PP-05"}


def test_names_are_unique() -> None:
    """A fault is found by its name."""
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 80


def test_what_a_right_encoder_breaks_by_what_it_is_is_no_false_alarm() -> None:
    """Batches round otherwise (BA-05, extended); whatever else fails is one."""
    name = "whole call in one batch"
    (entry,) = (one for one in DIFFERENCES if one.name == name)
    places = [place for place, check in enumerate(all_checks()) if check.clauses == ("BA-05",)]
    assert all(contract()[clause].level == "extended" for clause in entry.breaks)
    alone = {"sharp": False, "turns": len(all_checks()), "seed": places[0]}
    subject = Subject("tests.harmless:DIFFERENCES", name, "step3", "float32", "smoke", **alone)
    found = examine(subject)
    assert (found.cases, found.failed) == (0, ())
    other = dataclasses.replace(subject, name="one image at a time")
    assert examine(other).cases > 0
