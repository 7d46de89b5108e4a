"""PP: the patch pixels and the feature, present or not, in any float dtype, on any device."""

from __future__ import annotations

import dataclasses

import torch

from conformance.check import check
from conformance.checks.counts import as_the_list
from conformance.judge import Verdict, worst
from conformance.trial import Trial
from reference import MISSING_PATCHES, ImageItem
from strategies import Case, Placement, cases
from strategies.malformed import spoilt

# The float dtypes in which pixels arrive, for each dtype of the model.
OTHER_FLOATS = {
    torch.float32: (torch.bfloat16, torch.float64),
    torch.float64: (torch.float32,),
    torch.bfloat16: (torch.float32,),
    torch.float16: (torch.float32,),
}

_WITHOUT_PATCHES = ("patches absent", "patches None", "patches of zero rows")

# Makes numbers need more digits than bfloat16 has, so that a detour through it shows.
MORE_DIGITS = 1 + 2.0**-10


def recast(case: Case, name: str, *dtypes: torch.dtype) -> Case:
    """The same items with the feature or the patches cast to some dtypes, one after the other."""

    def cast(pixels: torch.Tensor) -> torch.Tensor:
        pixels = pixels.double() * MORE_DIGITS
        for dtype in dtypes:
            pixels = pixels.to(dtype)
        return pixels

    def change(item: ImageItem) -> ImageItem:
        if name == "feature":
            return ImageItem(cast(item.feature), item.model_specific_data)
        data = item.model_specific_data
        return ImageItem(item.feature, {**data, name: cast(data[name])})

    return case.replace(items=tuple(change(item) for item in case.items))


def as_if_cast(trial: Trial, case: Case, name: str) -> Verdict:
    """Pixels of another float dtype give what the same pixels give, cast to the model's first."""
    verdicts = []
    for dtype in OTHER_FLOATS[case.dtype]:
        cast = recast(case, name, dtype, case.dtype)
        outcome = trial.run(recast(case, name, dtype))
        verdicts.append(trial.same(cast, outcome, trial.run(cast)))
    return worst(verdicts)


def right_as_if_cast(trial: Trial, case: Case, name: str) -> Verdict:
    """As `as_if_cast`, judged by the float64 reference."""
    verdicts = []
    for dtype in OTHER_FLOATS[case.dtype]:
        outcome = trial.run(recast(case, name, dtype))
        verdicts.append(trial.right(recast(case, name, dtype, case.dtype), outcome))
    return worst(verdicts)


@check("PP-01", given=cases, patches=(0, 0), empty_patches=["none"])
def pp_01_none_is_absent(trial: Trial, case: Case) -> Verdict:
    """With no patches counted, patch pixels that are None are as good as absent."""
    return as_the_list(trial, case)


@check("PP-01", given=cases, patches=(0, 0), empty_patches=["zero-rows"])
def pp_01_zero_rows_are_absent(trial: Trial, case: Case) -> Verdict:
    """With no patches counted, patch pixels of zero rows are as good as absent."""
    return as_the_list(trial, case)


@check("PP-02", given=cases, total=1)
def pp_02_counted_patches_are_missing(trial: Trial, case: Case) -> Verdict:
    """Patches that are counted but not there raise the documented ValueError."""

    def without(fault: str) -> Verdict:
        verdict = trial.raises(trial.run(spoilt(case, fault)), ValueError, MISSING_PATCHES)
        return verdict if verdict.passed else dataclasses.replace(verdict, where=f"with {fault}")

    return worst([without(fault) for fault in _WITHOUT_PATCHES])


@check("PP-03", given=cases, total=1)
def pp_03_patches_of_another_dtype(trial: Trial, case: Case) -> Verdict:
    """Patch pixels of another float dtype give what the cast pixels give."""
    return as_if_cast(trial, case, "patch_pixel_values")


@check("PP-03", given=cases, after=["EN-01", "LA-02", "LA-03"], total=1)
def pp_03_no_digit_of_patches_is_lost(trial: Trial, case: Case) -> Verdict:
    """Patch pixels of another float dtype are cast to the model's, and to nothing less."""
    return right_as_if_cast(trial, case, "patch_pixel_values")


@check("PP-04", given=cases, total=1, placement=Placement(patches="cpu"))
def pp_04_patches_on_another_device(trial: Trial, case: Case) -> Verdict:
    """Patch pixels on the CPU, with a model elsewhere, are moved."""
    there = case.replace(placement=Placement())
    return trial.same(case, trial.run(case), trial.run(there))


@check("PP-05", given=cases, patches=(0, 0), placement=Placement(feature="cpu"))
def pp_05_feature_on_another_device(trial: Trial, case: Case) -> Verdict:
    """A feature on the CPU, with a model elsewhere, is moved."""
    there = case.replace(placement=Placement())
    return trial.same(case, trial.run(case), trial.run(there))


@check("PP-06", given=cases, patches=(0, 0))
def pp_06_feature_of_another_dtype(trial: Trial, case: Case) -> Verdict:
    """A feature of another float dtype gives what the cast feature gives."""
    return as_if_cast(trial, case, "feature")


@check("PP-06", given=cases, after=["EN-01", "LA-03"], patches=(0, 0))
def pp_06_no_digit_of_the_feature_is_lost(trial: Trial, case: Case) -> Verdict:
    """A feature of another float dtype is cast to the model's, and to nothing less."""
    return right_as_if_cast(trial, case, "feature")


@check("PP-07", given=cases, patches=(0, 0), empty_patches=["empty-list"])
def pp_07_an_empty_list_is_absent(trial: Trial, case: Case) -> Verdict:
    """An empty list of patch pixels is as good as None."""
    return as_the_list(trial, case)
