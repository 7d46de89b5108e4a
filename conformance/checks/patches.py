"""PP: the patch pixels and the feature, present or not, in any float dtype, on any device."""

from __future__ import annotations

import torch

from conformance.check import check
from conformance.checks.counts import as_the_list
from conformance.judge import Verdict
from conformance.trial import Trial
from reference import MISSING_PATCHES, ImageItem
from strategies import Case, Placement, cases, malformed

# The float dtype in which the pixels arrive, for each dtype of the model.
_OTHER_FLOAT = {
    torch.float32: torch.bfloat16,
    torch.float64: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
}


def recast(case: Case, name: str) -> Case:
    """The same items with the feature or the patches in another float dtype."""
    dtype = _OTHER_FLOAT[case.dtype]

    def cast(item: ImageItem) -> ImageItem:
        if name == "feature":
            return ImageItem(item.feature.to(dtype), item.model_specific_data)
        data = item.model_specific_data
        return ImageItem(item.feature, {**data, name: data[name].to(dtype)})

    return case.replace(items=tuple(cast(item) for item in case.items))


@check("PP-01", given=cases, patches=(0, 0), empty_patches=["none"])
def pp_01_none_is_absent(trial: Trial, case: Case) -> Verdict:
    """With no patches counted, patch pixels that are None are as good as absent."""
    return as_the_list(trial, case)


@check("PP-01", given=cases, patches=(0, 0), empty_patches=["zero-rows"])
def pp_01_zero_rows_are_absent(trial: Trial, case: Case) -> Verdict:
    """With no patches counted, patch pixels of zero rows are as good as absent."""
    return as_the_list(trial, case)


@check("PP-02", given=malformed, faults=["patches absent", "patches None", "patches of zero rows"])
def pp_02_counted_patches_are_missing(trial: Trial, case: Case) -> Verdict:
    """Patches that are counted but not there raise the documented ValueError."""
    return trial.raises(trial.run(case), ValueError, MISSING_PATCHES)


@check("PP-03", given=cases, total=1)
def pp_03_patches_of_another_dtype(trial: Trial, case: Case) -> Verdict:
    """Patch pixels of another float dtype give what the cast pixels give."""
    return trial.same(case, trial.run(recast(case, "patch_pixel_values")), trial.run(case))


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
    return trial.same(case, trial.run(recast(case, "feature")), trial.run(case))


@check("PP-07", given=cases, patches=(0, 0), empty_patches=["empty-list"])
def pp_07_an_empty_list_is_absent(trial: Trial, case: Case) -> Verdict:
    """An empty list of patch pixels is as good as None."""
    return as_the_list(trial, case)
