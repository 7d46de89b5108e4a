"""Which failures explain which."""

from __future__ import annotations

from conformance.diagnosis import Failure, explained


def failure(*clauses: str, after: tuple[str, ...] = (), value: bool = True) -> Failure:
    """A failed check."""
    return Failure(clauses, value, after)


def test_a_prerequisite_explains_wrong_values() -> None:
    """EN-10 stands before EN-05, and EN-05 before EN-04."""
    found = explained([failure("EN-10"), failure("EN-05"), failure("EN-04")])
    assert found == {"EN-10": (), "EN-05": ("EN-10",), "EN-04": ("EN-10",)}


def test_an_exception_is_never_explained() -> None:
    """An error is looked at itself, whatever else failed."""
    assert explained([failure("EN-10"), failure("EN-05", value=False)])["EN-05"] == ()


def test_one_check_that_is_not_explained_is_enough() -> None:
    """EN-05 has checks of which only one is behind EN-04."""
    both = [failure("EN-05"), failure("EN-05", after=("EN-04",)), failure("EN-04")]
    assert explained(both) == {"EN-05": (), "EN-04": ("EN-05",)}


def test_a_check_behind_another_clause_explains_nothing() -> None:
    """EN-05 fails in a check that looks at class tokens too: then EN-04 is the cause."""
    found = explained([failure("EN-05", after=("EN-04",)), failure("EN-04")])
    assert found == {"EN-05": ("EN-04",), "EN-04": ()}


def test_what_did_not_fail_excuses_nothing() -> None:
    """A check behind a clause that passed counts like any other."""
    found = explained([failure("EN-04", after=("EN-02",)), failure("EN-08")])
    assert found == {"EN-04": (), "EN-08": ("EN-04",)}


def test_failures_that_wait_for_each_other_are_both_shown() -> None:
    """A circle explains neither."""
    found = explained([failure("EN-06", after=("EN-07",)), failure("EN-07", after=("EN-06",))])
    assert found == {"EN-06": (), "EN-07": ()}
