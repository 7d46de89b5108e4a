"""No harmless difference fails a check: the suite must never fail a right encoder."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import pytest
import torch

from conformance.check import Check, all_checks
from conformance.driver import Driver
from conformance.oracle import Oracle
from conformance.power import Planted
from conformance.search import Effort, search
from conformance.trial import Trial
from reference import FAMILIES, EncoderConfig, ImageItem, ReferenceEncoder, init_weights
from strategies import paint
from tests.harmless import DIFFERENCES, DTYPES, Difference

CPU = torch.device("cpu")

WHOLE = "en_01_the_whole_encoder"

# One or two checks of each part, those of the arithmetic with the most arithmetic in them.
PARTS = (
    "en_00_the_picture_matters",
    "en_03_positions_off_the_native_grid",
    "en_05_epsilon",
    "en_07_rotary",
    "en_08_attention",
    "en_10_downsamplers_of_large_grids",
    "en_12_large_activations",
    "la_01_shape_with_patches",
    "la_02_patches_before_the_thumbnail",
    "la_03_items_in_order",
    "la_04_one_item_or_several",
    "la_06_images_without_patches_among_others",
    "ba_01_company_does_not_matter",
    "ba_03_no_leak_between_images",
    "ba_04_nan_stays_where_it_is",
    "np_04_ints_and_tensors",
    "pp_01_zero_rows_are_absent",
    "pp_03_patches_of_another_dtype",
    "se_01_items_are_not_modified",
    "se_03_a_result_stays",
    "se_05_global_state",
    "se_06_strides_of_patches",
    "se_07_input_that_requires_grad",
    "se_08_other_counts",
)


def rotated() -> Iterator[tuple[Difference, str, torch.dtype]]:
    """Each difference with one of its families and dtypes, in turn."""
    turns = {difference.dtypes: itertools.cycle(difference.dtypes) for difference in DIFFERENCES}
    families = {
        difference.families: itertools.cycle(difference.families) for difference in DIFFERENCES
    }
    for difference in DIFFERENCES:
        yield difference, next(families[difference.families]), next(turns[difference.dtypes])


TURNS = list(rotated())


@cache
def oracle(dtype: torch.dtype) -> Oracle:
    """One oracle for all, since all are asked about the same cases."""
    return Oracle(dtype, CPU)


@cache
def checks() -> dict[str, Check]:
    """Every check by name."""
    return {check.name: check for check in all_checks()}


def named(turn: tuple[Difference, str, torch.dtype]) -> str:
    """A difference, its family and its dtype."""
    difference, family, dtype = turn
    return f"{difference.name}-{family}-{str(dtype).removeprefix('torch.')}"


def test_the_catalogue_is_as_large_as_it_should_be() -> None:
    """There are enough differences, each with its name, and every family and dtype has some."""
    assert len({difference.name for difference in DIFFERENCES}) == len(DIFFERENCES) >= 22
    assert {family for _, family, _ in TURNS} == set(FAMILIES)
    assert {dtype for _, _, dtype in TURNS} == set(DTYPES)


@pytest.mark.parametrize("turn", TURNS, ids=named)
def test_no_check_fails_a_right_encoder(turn: tuple[Difference, str, torch.dtype]) -> None:
    """An encoder that differs in a harmless way passes the whole and a third of the parts."""
    difference, family, dtype = turn
    trial = Trial(Driver(Planted(difference), CPU), oracle(dtype), family, dtype)
    for name in (WHOLE, *PARTS[TURNS.index(turn) % 3 :: 3]):
        found = search(checks()[name], trial, Effort(1, shrink=False))
        assert found.case is None, (name, found.verdict, found.case)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_harmless_differences_compute_the_same(difference: Difference) -> None:
    """In the widest dtype of each, a difference gives the reference's rows within rounding."""
    dtype = max(difference.dtypes, key=lambda dtype: torch.finfo(dtype).bits)
    rounding = 1e-4 if dtype in (torch.float32, torch.float64) else 0.1
    for family in difference.families[:2]:
        config = EncoderConfig.tiny(family, image_size=10, projector_bias=True)
        weights = init_weights(config, 0)
        feature = torch.stack([paint("normal", 0, f"{n}", (3, 10, 10)) for n in range(5)]).to(dtype)
        items = [
            ImageItem(
                feature[:2], {"num_patches": [1, 2], "patch_pixel_values": feature[:3, :, 2:, 2:]}
            ),
            ImageItem(feature[2:], {"num_patches": [0, 0, 0]}),
        ]
        exact = ReferenceEncoder(config, weights, dtype=torch.float64).get_image_feature(items)
        found = difference.encoder(config, weights, device="cpu", dtype=dtype)
        rows = found.get_image_feature(items)
        assert rows.dtype == dtype
        assert (rows.double() - exact).abs().max() < rounding * exact.abs().max()
