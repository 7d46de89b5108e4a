"""MA: malformed input never becomes a silently wrong result."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformance.check import check
from conformance.judge import PASSED, Verdict, failed, worst
from conformance.outcome import Raised, Returned
from conformance.trial import Trial
from strategies import Case, cases, malformed
from strategies.malformed import spoilt

_ONE_LAYER = {"layers": 1}


@check("MA-01", given=malformed, faults=["a patch row too few"])
def ma_01_more_counted_than_there_are(trial: Trial, case: Case) -> Verdict:
    """Counts that add up to more than the patch rows are rejected."""
    return trial.rejected(trial.run(case), "counts that add up to more than the patch rows")


@check("MA-02", given=malformed, faults=["a patch row too many"])
def ma_02_fewer_counted_than_there_are(trial: Trial, case: Case) -> Verdict:
    """Counts that add up to less than the patch rows are rejected."""
    return trial.rejected(trial.run(case), "counts that add up to less than the patch rows")


@check("MA-03", given=malformed, faults=["count negative"])
def ma_03_a_negative_count(trial: Trial, case: Case) -> Verdict:
    """A negative count is rejected."""
    return trial.rejected(trial.run(case), "a negative count")


@check("MA-04", given=malformed, faults=["fewer counts than thumbnails"])
def ma_04_fewer_counts_than_images(trial: Trial, case: Case) -> Verdict:
    """Fewer counts than thumbnails are rejected."""
    return trial.rejected(trial.run(case), "fewer counts than thumbnails")


@check("MA-05", given=malformed, faults=["more counts than thumbnails"])
def ma_05_more_counts_than_images(trial: Trial, case: Case) -> Verdict:
    """More counts than thumbnails raise."""
    return trial.rejected(trial.run(case), "more counts than thumbnails")


@check(
    "MA-06",
    given=cases,
    images=(1, 2),
    patches=(0, 0),
    variants=[{**_ONE_LAYER, "image_size": 16}],
    grids=[(2, 8), (8, 2)],
)
def ma_06_a_rectangle_of_square_count(trial: Trial, case: Case) -> Verdict:
    """A rectangle whose cells could fill a square is computed right or rejected."""
    return trial.right_or_rejected(case)


@check(
    "MA-07",
    given=cases,
    images=(1, 2),
    patches=(0, 0),
    variants=[{**_ONE_LAYER, "image_size": 16}],
    grids=[(4, 6), (6, 4), (3, 5), (5, 8)],
)
def ma_07_any_other_rectangle(trial: Trial, case: Case) -> Verdict:
    """A rectangle whose cells cannot fill a square is computed right or raises."""
    return trial.right_or_rejected(case)


_BAD_FEATURES = (
    "feature of rank 3",
    "feature of rank 5",
    "feature of one channel",
    "feature of four channels",
    "feature with channels last",
)
_BAD_PATCHES = ("patches of rank 3", "patches of one channel")


def every_one_raises(trial: Trial, case: Case, faults: Sequence[str]) -> Verdict:
    """Each of some faults of a sound case raises."""
    return worst([trial.rejected(trial.run(spoilt(case, fault)), f"a {fault}") for fault in faults])


@check("MA-08", given=cases, patches=(0, 0))
def ma_08_rank_and_channels_of_the_feature(trial: Trial, case: Case) -> Verdict:
    """A feature of the wrong rank or channel count raises."""
    return every_one_raises(trial, case, _BAD_FEATURES)


@check("MA-08", given=cases, total=1)
def ma_08_rank_and_channels_of_patches(trial: Trial, case: Case) -> Verdict:
    """Patches of the wrong rank or channel count raise."""
    return every_one_raises(trial, case, _BAD_PATCHES)


@check("MA-09", given=malformed, faults=["integer feature"])
def ma_09_an_integer_feature(trial: Trial, case: Case) -> Verdict:
    """Integer pixels, which were not normalised, are rejected in the feature."""
    return trial.rejected(trial.run(case), "integer pixels")


@check("MA-09", given=malformed, faults=["integer patches"])
def ma_09_integer_patches(trial: Trial, case: Case) -> Verdict:
    """Integer pixels, which were not normalised, are rejected in patches."""
    return trial.rejected(trial.run(case), "integer pixels")


@check("MA-10", given=cases, images=(1, 1), patches=(0, 0), variants=[_ONE_LAYER])
def ma_10_no_items(trial: Trial, case: Case) -> Verdict:
    """No items give an empty result, or an error that names the cause."""
    outcome = trial.run(case.replace(items=()))
    expected = f"a result of shape (0, {case.config.text_width}), or an error that speaks of items"
    if isinstance(outcome, Returned):
        empty = tuple(outcome.tensor.shape) == (0, case.config.text_width)
        return PASSED if empty else failed(expected, outcome)
    if isinstance(outcome, Raised) and re.search(r"\b(items?|images?)\b", outcome.message):
        return Verdict(True, note=f"{outcome.type}: {outcome.message}")
    return failed(expected, outcome)


@check(
    "MA-11",
    given=cases,
    images=(1, 2),
    patches=(0, 0),
    variants=[_ONE_LAYER],
    grids=[(5, 5), (6, 6), (2, 6), (6, 2)],
)
def ma_11_wider_than_the_native_grid(trial: Trial, case: Case) -> Verdict:
    """A grid wider than the native one is computed right or raises."""
    return trial.right_or_rejected(case)
