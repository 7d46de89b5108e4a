"""SE: what a call leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from conformance.check import check
from conformance.checks.counts import as_the_list
from conformance.checks.patches import OTHER_FLOATS
from conformance.driver import Observation
from conformance.judge import PASSED, Verdict, failed, worst
from conformance.outcome import Returned
from conformance.trial import Trial
from reference import ImageItem
from strategies import Case, Image, cases, malformed
from strategies.items import LAYOUTS


def on_pixels(case: Case, change: Callable[[Tensor], Tensor]) -> Case:
    """The same items with every tensor of pixels changed."""

    def changed(item: ImageItem) -> ImageItem:
        data = dict(item.model_specific_data)
        if isinstance(data.get("patch_pixel_values"), Tensor):
            data["patch_pixel_values"] = change(data["patch_pixel_values"])
        return ImageItem(change(item.feature), data)

    return case.replace(items=tuple(changed(item) for item in case.items))


def leaves_the_items(trial: Trial, case: Case) -> Verdict:
    """Neither tensors nor dicts of the caller differ after a call."""
    return items_left(trial.observe(case))


def items_left(seen: Observation) -> Verdict:
    """Pass if a call left the caller's items as they were, whatever came of it."""
    if seen.mutated:
        return failed("the caller's items as they were", f"changed: {', '.join(seen.mutated)}")
    return PASSED


def answers_and_leaves_the_items(trial: Trial, case: Case) -> Verdict:
    """A call that must succeed does, and leaves the caller's items as they were."""
    seen = trial.observe(case)
    if not isinstance(seen.outcome, Returned):
        return failed("a result", seen.outcome)
    return items_left(seen)


@check("SE-01", given=cases, total=1, unknown_keys=True)
def se_01_items_are_not_modified(trial: Trial, case: Case) -> Verdict:
    """A call leaves the caller's items as they were."""
    return answers_and_leaves_the_items(trial, case)


@check("SE-01", given=cases, patches=(0, 0))
def se_01_thumbnails_are_not_modified(trial: Trial, case: Case) -> Verdict:
    """A call without patches leaves the caller's items as they were."""
    return answers_and_leaves_the_items(trial, case)


@check("SE-01", given=cases, total=1)
def se_01_items_of_another_dtype_are_not_modified(trial: Trial, case: Case) -> Verdict:
    """A call that has to cast the pixels leaves the caller's items as they were."""
    dtype = OTHER_FLOATS[case.dtype][0]
    return answers_and_leaves_the_items(trial, on_pixels(case, lambda pixels: pixels.to(dtype)))


@check(
    "SE-01",
    given=malformed,
    faults=["patches absent", "counts absent beside patches", "more counts than thumbnails"],
)
def se_01_items_are_not_modified_on_error(trial: Trial, case: Case) -> Verdict:
    """A call that fails leaves the caller's items as they were."""
    return leaves_the_items(trial, case)


@check("SE-02", given=cases, patches=(0, 0))
def se_02_the_same_call_twice(trial: Trial, case: Case) -> Verdict:
    """The same call twice gives the same result, bit for bit on the CPU."""
    one, two = trial.run(case), trial.run(case)
    if trial.device.type != "cpu":
        return trial.same(case, two, one)
    if not isinstance(one, Returned) or not isinstance(two, Returned):
        return failed("a result, twice", one if not isinstance(one, Returned) else two)
    if one.tensor.shape == two.tensor.shape and bool(torch.equal(one.tensor, two.tensor)):
        return PASSED
    return failed("the same bits twice", "results that differ")


@check("SE-03", given=cases, patches=(0, 0))
def se_03_a_result_stays(trial: Trial, case: Case) -> Verdict:
    """A result that was handed out is not overwritten by a later call."""
    later = on_pixels(case, lambda pixels: 0.25 - pixels)
    return trial.same(case, trial.sequence(case, later)[0], trial.run(case))


@check("SE-04", given=cases, patches=(0, 0))
def se_04_after_an_error(trial: Trial, case: Case) -> Verdict:
    """After calls that fail the next valid call is right."""
    return right_after_errors(trial, case)


@check("SE-04", given=cases, patches=(1, 2))
def se_04_after_an_error_with_patches(trial: Trial, case: Case) -> Verdict:
    """After calls that fail the next valid call with patches is right."""
    return right_after_errors(trial, case)


def right_after_errors(trial: Trial, case: Case) -> Verdict:
    """After each of some calls that fail, the case gives what it gives a new encoder."""
    expected = trial.run(case, fresh=True)
    return worst(
        [
            trial.same(case, trial.sequence(spoilt, case, fresh=True)[1], expected)
            for spoilt in failing(case)
        ]
    )


def failing(case: Case) -> list[Case]:
    """The first item without counts, with a patch that is not there, with a count too many."""
    first = case.items[0]
    counts = first.model_specific_data["num_patches"]
    patches = first.model_specific_data.get("patch_pixel_values")
    rows = {} if patches is None else {"patch_pixel_values": patches}
    without: list[dict[str, Any]] = [
        rows,
        {"num_patches": [1, *counts[1:]]},
        {"num_patches": [*counts, 0], **rows},
    ]
    return [case.replace(items=(ImageItem(first.feature, data),)) for data in without]


@check("SE-05", given=cases, patches=(0, 0))
def se_05_global_state(trial: Trial, case: Case) -> Verdict:
    """A call leaves grad mode, defaults, RNG state and precision flags as it found them."""
    outcome = trial.run(case)
    if not isinstance(outcome, Returned):
        return failed("a result", outcome)
    return leaves_the_state(trial, case)


@check("SE-05", given=malformed, faults=["counts absent", "more counts than thumbnails"])
def se_05_global_state_on_error(trial: Trial, case: Case) -> Verdict:
    """A call that fails leaves global state as it found it."""
    return leaves_the_state(trial, case)


def leaves_the_state(trial: Trial, case: Case) -> Verdict:
    """No global state of torch differs after a call."""
    disturbed = trial.observe(case).disturbed
    if disturbed:
        return failed("torch's global state as it was", f"changed: {', '.join(disturbed)}")
    return PASSED


def whatever_the_strides(trial: Trial, case: Case) -> Verdict:
    """Pixels of every layout give what their contiguous copies give."""
    changed = [on_pixels(case, layout) for layout in LAYOUTS.values()]
    return worst([as_the_list(trial, other) for other in changed])


@check("SE-06", given=cases, patches=(0, 0))
def se_06_strides_of_the_feature(trial: Trial, case: Case) -> Verdict:
    """A feature of any strides equals its contiguous copy."""
    return whatever_the_strides(trial, case)


@check("SE-06", given=cases, patches=(1, 2))
def se_06_strides_of_patches(trial: Trial, case: Case) -> Verdict:
    """Patches of any strides equal their contiguous copy."""
    return whatever_the_strides(trial, case)


@check("SE-07", given=cases, patches=(0, 0))
def se_07_input_that_requires_grad(trial: Trial, case: Case) -> Verdict:
    """Pixels that require grad are accepted."""
    marked = on_pixels(case, lambda pixels: pixels.clone().requires_grad_())
    return trial.same(case, trial.run(marked), trial.run(case))


@check("SE-07", given=cases, patches=(0, 0))
def se_07_input_from_inference_mode(trial: Trial, case: Case) -> Verdict:
    """Pixels from inference mode are accepted."""

    def inferred(pixels: Tensor) -> Tensor:
        with torch.inference_mode():
            return pixels.clone()

    return trial.same(case, trial.run(on_pixels(case, inferred)), trial.run(case))


@check("SE-08", given=cases, patches=(1, 2))
def se_08_other_patches(trial: Trial, case: Case) -> Verdict:
    """The same feature with other patches gets an answer of its own."""
    images = case.images
    others = [Image(i.thumbnail, None if i.patches is None else 0.25 - i.patches) for i in images]
    return not_stale(trial, case.regrouped([others]), case)


@check("SE-08", given=cases, images=(1, 1), patches=(2, 3))
def se_08_other_counts(trial: Trial, case: Case) -> Verdict:
    """The same feature with fewer patches gets an answer of its own."""
    (image,) = case.images
    assert image.patches is not None
    return not_stale(trial, case, case.regrouped([[Image(image.thumbnail, image.patches[:-1])]]))


@check("SE-08", given=cases, images=(2, 2), patches=(1, 1))
def se_08_the_same_patches_of_other_images(trial: Trial, case: Case) -> Verdict:
    """The same feature and patches, counted otherwise, get an answer of their own."""
    one, two = case.images
    assert one.patches is not None
    assert two.patches is not None
    both = torch.cat([one.patches, two.patches])
    other = case.regrouped([[Image(one.thumbnail, both), Image(two.thumbnail)]])
    return worst([not_stale(trial, other, case), not_stale(trial, case, other)])


@check("SE-08", given=cases, images=(2, 3), patches=(1, 2))
def se_08_another_last_picture(trial: Trial, case: Case) -> Verdict:
    """The same patches with another last thumbnail get an answer of their own."""
    *rest, last = case.images
    changed = Image(0.25 - last.thumbnail, last.patches)
    return not_stale(trial, case.regrouped([[*rest, changed]]), case)


def four_small(**options: Any) -> st.SearchStrategy[Case]:
    """Cases of four pictures of half the native side."""
    variants = [{"image_size": 8}, {"image_size": 8, "width": 64, "heads": 4, "mlp_width": 96}]
    options = {"images": (4, 4), "patches": (0, 0), "grids": [(2, 2)], **options}
    return cases(**options, variants=variants)


@check("SE-08", given=four_small)
def se_08_equal_bytes_in_another_shape(trial: Trial, case: Case) -> Verdict:
    """Four small pictures and one large picture of the same bytes get answers of their own."""
    bytes_of_four = case.items[0].feature
    side = bytes_of_four.shape[-1] * 2
    large = case.regrouped([[Image(bytes_of_four.reshape(3, side, side))]])
    return worst([not_stale(trial, case, large), not_stale(trial, large, case)])


def not_stale(trial: Trial, earlier: Case, case: Case) -> Verdict:
    """After an earlier call a case gets the answer that a new encoder gives it."""
    expected = trial.run(case, fresh=True)
    return trial.same(case, trial.sequence(earlier, case, fresh=True)[1], expected)
