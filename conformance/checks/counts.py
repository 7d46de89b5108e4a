"""NP: the counts, in every form in which callers write them."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

from conformance.check import check
from conformance.judge import Verdict, worst
from conformance.trial import Trial
from reference import MISSING_COUNTS, ImageItem, read_counts
from strategies import Case, cases, malformed, numpy_forms, scalar_forms, tensor_forms
from strategies.counts import INTEGER_DTYPES, list_of_tensors_forms, mixed_forms, tuple_forms


def as_the_list(trial: Trial, case: Case) -> Verdict:
    """The result is that of the same counts as a list of ints."""
    return trial.same(case, trial.run(case), trial.run(case.plain))


@check("NP-01", given=malformed, faults=["counts absent", "counts absent beside patches"])
def np_01_absent_counts_raise(trial: Trial, case: Case) -> Verdict:
    """Counts that are absent raise the documented ValueError."""
    return trial.raises(trial.run(case), ValueError, MISSING_COUNTS)


@check("NP-02", given=malformed, faults=["counts None", "counts None beside patches"])
def np_02_none_is_absent(trial: Trial, case: Case) -> Verdict:
    """Counts that are None raise the documented ValueError."""
    return trial.raises(trial.run(case), ValueError, MISSING_COUNTS)


@check("NP-03", given=cases, images=(1, 1), patches=(1, 3), count_forms=scalar_forms())
def np_03_an_int_is_one_count(trial: Trial, case: Case) -> Verdict:
    """An int n means [n]."""
    return as_the_list(trial, case)


@check("NP-03", given=cases, images=(1, 1), patches=(0, 0), count_forms=scalar_forms())
def np_03_zero_is_one_count(trial: Trial, case: Case) -> Verdict:
    """The int 0 means [0]."""
    return as_the_list(trial, case)


@check("NP-04", given=cases, total=1, count_forms=tuple_forms())
def np_04_a_tuple(trial: Trial, case: Case) -> Verdict:
    """A tuple of ints means its values."""
    return as_the_list(trial, case)


@check("NP-04", given=cases, total=1, count_forms=list_of_tensors_forms())
def np_04_zero_d_tensors(trial: Trial, case: Case) -> Verdict:
    """A list or tuple of 0-d tensors means their values."""
    return as_the_list(trial, case)


@check("NP-04", given=cases, images=(2, 3), total=1, count_forms=mixed_forms())
def np_04_ints_and_tensors(trial: Trial, case: Case) -> Verdict:
    """A list of ints and 0-d tensors means their values."""
    return as_the_list(trial, case)


@check("NP-05", given=cases, images=(1, 1), total=1, count_forms=tensor_forms(shape="scalar"))
def np_05_a_0d_tensor(trial: Trial, case: Case) -> Verdict:
    """A 0-d tensor means one count."""
    return as_the_list(trial, case)


@check("NP-05", given=cases, total=1, count_forms=tensor_forms(shape="flat"))
def np_05_a_1d_tensor(trial: Trial, case: Case) -> Verdict:
    """A 1-d tensor means its values."""
    return as_the_list(trial, case)


@check("NP-05", given=cases, images=(2, 3), total=1, count_forms=tensor_forms(shape="row"))
def np_05_a_row(trial: Trial, case: Case) -> Verdict:
    """A tensor of one row means its values."""
    return as_the_list(trial, case)


@check("NP-05", given=cases, images=(2, 3), total=1, count_forms=tensor_forms(shape="column"))
def np_05_a_column(trial: Trial, case: Case) -> Verdict:
    """A tensor of one column means its values."""
    return as_the_list(trial, case)


def four_uneven(**options: Any) -> st.SearchStrategy[Case]:
    """Four images of which the second and the third have not as many patches."""

    def uneven(case: Case) -> bool:
        counts = read_counts(case.items[0].model_specific_data["num_patches"])
        return counts[1] != counts[2]

    return cases(**{"images": (4, 4), "patches": (0, 2), "total": 1, **options}).filter(uneven)


@check("NP-05", given=four_uneven, count_forms=tensor_forms(shape="square"))
def np_05_two_rows_of_two(trial: Trial, case: Case) -> Verdict:
    """A tensor of two rows and two columns means its values, row by row."""
    return as_the_list(trial, case)


@check("NP-06", given=cases, total=1)
def np_06_every_integer_dtype(trial: Trial, case: Case) -> Verdict:
    """Counts of every integer dtype count the same."""
    return worst([as_the_list(trial, counted(case, dtype)) for dtype in INTEGER_DTYPES])


def counted(case: Case, dtype: torch.dtype) -> Case:
    """The same items with their counts as 1-d tensors of a dtype."""

    def change(item: ImageItem) -> ImageItem:
        data = item.model_specific_data
        counts = torch.tensor(data["num_patches"], dtype=dtype)
        return ImageItem(item.feature, {**data, "num_patches": counts})

    return case.replace(items=tuple(change(item) for item in case.items))


@check("NP-07", given=cases, total=1, count_forms=tensor_forms())
def np_07_counts_on_another_device(trial: Trial, case: Case) -> Verdict:
    """Counts on the CPU, with a model elsewhere, mean their values."""
    return as_the_list(trial, case)


@check("NP-08", given=cases, total=1, count_forms=numpy_forms())
def np_08_numpy_integers(trial: Trial, case: Case) -> Verdict:
    """NumPy integers and arrays of them mean their values."""
    return as_the_list(trial, case)


@check("NP-09", given=malformed, faults=["counts are bools", "counts are a bool tensor"])
def np_09_bools_are_rejected(trial: Trial, case: Case) -> Verdict:
    """Bools are no counts."""
    return trial.rejected(trial.run(case), "counts that are bools")


@check("NP-09", given=malformed, faults=["counts are strings"])
def np_09_strings_are_rejected(trial: Trial, case: Case) -> Verdict:
    """Strings are no counts."""
    return trial.rejected(trial.run(case), "counts that are strings")


@check(
    "NP-09", given=malformed, faults=["counts are fractions", "counts are a tensor of fractions"]
)
def np_09_fractions_are_rejected(trial: Trial, case: Case) -> Verdict:
    """Floats that are not whole are no counts."""
    return trial.rejected(trial.run(case), "counts that are fractions")


@check("NP-09", given=malformed, faults=["counts are NaN"])
def np_09_nan_is_rejected(trial: Trial, case: Case) -> Verdict:
    """NaN is no count."""
    return trial.rejected(trial.run(case), "a count that is NaN")
