"""Which cases a search draws, and what it makes of failures."""

from __future__ import annotations

import dataclasses

import torch

from conformance.check import Check, all_checks
from conformance.driver import Driver
from conformance.judge import PASSED, Verdict, wrong
from conformance.oracle import Oracle
from conformance.search import Effort, Search, search
from conformance.trial import Trial
from strategies import Case
from tests.miniatures import right

CPU = torch.device("cpu")


def a_check(name: str = "en_01_the_whole_encoder") -> Check:
    """A check of the suite."""
    return next(check for check in all_checks() if check.name == name)


def searched(check: Check, seed: int = 0) -> Search:
    """A search on a right encoder."""
    trial = Trial(Driver(right, CPU), Oracle(torch.float32, CPU), "step3", torch.float32)
    return search(check, trial, Effort(3, seed))


def drawn(seed: int) -> list[str]:
    """The cases that a seed draws."""
    seen: list[str] = []

    def see(trial: Trial, case: Case) -> Verdict:  # noqa: ARG001
        seen.append(case.digest)
        return PASSED

    searched(dataclasses.replace(a_check(), holds=see), seed)
    return seen


def test_a_seed_draws_the_same_cases_again() -> None:
    """And another seed draws others."""
    assert drawn(3) == drawn(3)
    assert len(set(drawn(3)) - set(drawn(4))) > 5


def test_a_failure_shrinks_to_the_smallest_case() -> None:
    """If every case fails, one image without patches is left."""

    def fail(trial: Trial, case: Case) -> Verdict:  # noqa: ARG001
        return wrong("something else", "this")

    found = searched(dataclasses.replace(a_check("la_04_one_item_or_several"), holds=fail))
    assert found.case is not None
    assert not found.stateful
    assert sum(image.count for image in found.case.images) == 1
    assert len(found.case.images) == 2


def test_a_failure_that_a_new_encoder_does_not_show_is_one_of_state() -> None:
    """It is still a failure, and says that earlier calls are needed."""
    seen: set[str] = set()

    def fail_once(trial: Trial, case: Case) -> Verdict:  # noqa: ARG001
        known = case.digest in seen
        seen.add(case.digest)
        return PASSED if known else wrong("the right rows", "stale ones")

    found = searched(dataclasses.replace(a_check(), holds=fail_once))
    assert found.case is not None
    assert found.stateful
    assert not found.verdict.passed
