"""LA: what stands where in the result. The implementation is compared with itself."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

from conformance.check import check
from conformance.checks.counts import as_the_list
from conformance.judge import PASSED, Verdict, failed, wrong
from conformance.outcome import Returned, joined
from conformance.trial import Trial, parts
from strategies import Case, Image, cases


def shape_dtype_device(trial: Trial, case: Case) -> Verdict:
    """The result has the rows, columns, dtype and device of the contract."""
    rows = sum(part.rows for part in parts(case))
    shape, device = (rows, case.config.text_width), trial.device
    dtype = str(case.dtype).removeprefix("torch.")
    expected = f"a {dtype} result of shape {shape} on {device.type}"
    outcome = trial.run(case)
    if not isinstance(outcome, Returned):
        return failed(expected, outcome)
    found = outcome.tensor
    right = tuple(found.shape) == shape and found.dtype == case.dtype
    if right and torch.device(outcome.device).type == device.type:
        return PASSED
    return wrong(expected, f"{outcome} on {outcome.device}")


@check("LA-01", given=cases, patches=(0, 0))
def la_01_shape_of_thumbnails(trial: Trial, case: Case) -> Verdict:
    """Images without patches give T rows each, in the model's dtype, on its device."""
    return shape_dtype_device(trial, case)


@check("LA-01", given=cases, patches=(0, 0), variants=[{"image_size": 10}], grids=[(5, 5)])
def la_01_shape_of_odd_grids(trial: Trial, case: Case) -> Verdict:
    """Sides that are odd are rounded up, not cut."""
    return shape_dtype_device(trial, case)


@check("LA-01", given=cases, total=1)
def la_01_shape_with_patches(trial: Trial, case: Case) -> Verdict:
    """Images with patches give count*P + T rows each, in the model's dtype, on its device."""
    return shape_dtype_device(trial, case)


@check("LA-02", given=cases, images=(1, 1), patches=(1, 3))
def la_02_patches_before_the_thumbnail(trial: Trial, case: Case) -> Verdict:
    """An image is its patches in order, then its thumbnail, each as if sent alone."""
    (image,) = case.images
    return trial.same(case, trial.run(case), trial.pictures_alone(case, image))


def as_images_alone(trial: Trial, case: Case) -> Verdict:
    """The result is that of each image alone, in order."""
    alone = joined([trial.alone(case, image) for image in case.images])
    return trial.same(case, trial.run(case), alone)


def with_unequal_counts(**options: Any) -> st.SearchStrategy[Case]:
    """Cases in which every image has patches, and not all as many."""

    def unequal(case: Case) -> bool:
        return len({image.count for image in case.images}) > 1

    return cases(images=(2, 3), patches=(1, 3), total=3, **options).filter(unequal)


@check("LA-03", given=with_unequal_counts)
def la_03_images_of_an_item_in_order(trial: Trial, case: Case) -> Verdict:
    """The images of an item stand in order, each as if sent alone."""
    return as_images_alone(trial, case)


@check("LA-03", given=cases, images=(2, 3), patches=(0, 0), grouping=["split"])
def la_03_items_in_order(trial: Trial, case: Case) -> Verdict:
    """The items of a call stand in order, each as if sent alone."""
    return as_images_alone(trial, case)


@check("LA-04", given=cases, images=(2, 4), total=1)
def la_04_one_item_or_several(trial: Trial, case: Case) -> Verdict:
    """An item of k images equals k items of one image each."""
    split = case.regrouped([[image] for image in case.images])
    return trial.same(case, trial.run(split), trial.run(case))


@check("LA-05", given=cases, patches=(0, 0), unknown_keys=True)
def la_05_unknown_keys(trial: Trial, case: Case) -> Verdict:
    """Keys that no encoder knows change nothing."""
    return as_the_list(trial, case)


def with_gaps(**options: Any) -> st.SearchStrategy[Case]:
    """Cases in which an image without patches stands between two with patches."""

    def has_gap(case: Case) -> bool:
        counts = [image.count for image in case.images]
        return any(not n and any(counts[:i]) and any(counts[i:]) for i, n in enumerate(counts))

    return cases(images=(3, 4), patches=(0, 2), total=2, **options).filter(has_gap)


def led_by_none(**options: Any) -> st.SearchStrategy[Case]:
    """Cases in which the first image has no patches, and a later one has."""

    def is_led(case: Case) -> bool:
        return not case.images[0].count

    return cases(images=(2, 3), patches=(0, 2), total=1, **options).filter(is_led)


@check("LA-06", given=led_by_none)
def la_06_a_first_image_without_patches(trial: Trial, case: Case) -> Verdict:
    """A first image without patches keeps its place before others."""
    return as_with_patches_gathered(trial, case)


@check("LA-06", given=with_gaps)
def la_06_images_without_patches_among_others(trial: Trial, case: Case) -> Verdict:
    """Images without patches keep their places among others."""
    return as_with_patches_gathered(trial, case)


def as_with_patches_gathered(trial: Trial, case: Case) -> Verdict:
    """The same pictures, all patches given to the first image, give the same rows elsewhere."""
    images = case.images
    patches = torch.cat([image.patches for image in images if image.patches is not None])
    bare = [Image(image.thumbnail) for image in images[1:]]
    gathered = case.regrouped([[Image(images[0].thumbnail, patches), *bare]])
    outcome = trial.run(gathered)
    if not isinstance(outcome, Returned):
        return failed("a result, with all patches at the first image", outcome)
    pictures = parts(gathered)
    sizes = [part.rows for part in pictures]
    if outcome.tensor.shape[0] != sum(sizes):
        return wrong(f"{sum(sizes)} rows, with all patches at the first image", outcome)
    blocks = list(outcome.tensor.split(sizes))
    thumbnails, rest = blocks[len(patches) :], blocks[: len(patches)]
    ordered = []
    for image, thumbnail in zip(images, thumbnails, strict=True):
        ordered += [*rest[: image.count], thumbnail]
        rest = rest[image.count :]
    return trial.same(case, trial.run(case), Returned(torch.cat(ordered)))
