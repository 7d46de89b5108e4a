"""Every planted fault is named by its clause; see `python -m conformance power`."""

from __future__ import annotations

import pytest

from conformance.contract import contract
from conformance.power import Subject, examine, in_one_family
from tests.faults import FAULTS

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
