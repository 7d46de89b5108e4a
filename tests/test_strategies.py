"""The strategies on their own: what they draw, and that they take their options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from torch import Tensor

from reference import FAMILIES, EncoderConfig, ReferenceEncoder, read_counts
from strategies import (
    FAULTS,
    PROFILES,
    Case,
    Placement,
    Weights,
    cases,
    configs,
    counts,
    items,
    list_forms,
    malformed,
    numpy_forms,
    paint,
    pixels,
    scalar_forms,
    square_grids,
    tensor_forms,
)
from strategies.configs import VARIANTS
from strategies.counts import INTEGER_DTYPES
from strategies.items import LAYOUTS

few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TINY = EncoderConfig.tiny("step3-vl-10b")


def test_a_bare_call_of_each_strategy_draws() -> None:
    """Without arguments, items with a configuration, every strategy draws what it is named for."""

    @few
    @given(counts(), pixels(), configs(), cases(), items(config=TINY), malformed(faults=FAULTS))
    def draws(
        found: tuple[int, ...],
        picture: Tensor,
        config: EncoderConfig,
        case: Case,
        drawn: tuple[Any, ...],
        bad: Case,
    ) -> None:
        assert all(type(count) is int for count in found)
        assert picture.shape == (1, 3, 8, 8)
        assert config.family in FAMILIES
        assert case.images
        assert len(drawn) == 1
        assert isinstance(bad, Case)

    draws()


@few
@given(st.data())
def test_counts_keep_their_bounds(data: st.DataObject) -> None:
    """Images, patches of each and the sum of all stay within what was asked for."""
    fewest = data.draw(st.integers(1, 3))
    most = data.draw(st.integers(fewest, 5))
    found = data.draw(counts(images=(fewest, most), patches=(1, 3), total=4))
    assert fewest <= len(found) <= most
    assert all(1 <= count <= 3 for count in found)
    assert sum(found) >= 4


@few
@given(st.data(), st.sampled_from(list(PROFILES)), st.sampled_from([torch.float16, torch.float64]))
def test_pixels_have_shape_and_dtype(data: st.DataObject, profile: str, dtype: torch.dtype) -> None:
    """Pixels have the shape and dtype asked for, and the pictures of one tensor differ."""
    drawn = data.draw(pixels(shape=(2, 3, 6, 10), dtype=dtype, profiles=[profile]))
    assert (tuple(drawn.shape), drawn.dtype) == ((2, 3, 6, 10), dtype)
    same = torch.equal(drawn[0].nan_to_num(0.5), drawn[1].nan_to_num(0.5))
    assert same == (profile in ("constant", "black", "first-pixel"))


@few
@given(pixels(shape=(0, 3, 4, 4)))
def test_no_pixels(drawn: Tensor) -> None:
    """Zero pictures are a tensor of zero rows."""
    assert drawn.shape == (0, 3, 4, 4)


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_are_what_they_are_named(profile: str) -> None:
    """Only `nan` and `inf` hold values that are not finite, and those one; the rest are sane."""
    picture = paint(profile, 1, "x", (3, 10, 12))
    odd = int((~picture.isfinite()).sum())
    assert odd == (1 if profile in ("nan", "inf") else 0)
    assert bool(picture.isnan().any()) == (profile == "nan")
    assert picture.nan_to_num(0, 0, 0).abs().max() <= (128 if profile == "extreme" else 8)
    assert bool(picture.any()) == (profile != "black")


def test_an_unknown_profile_or_fault_is_named() -> None:
    """A profile or a fault that there is not is refused by name."""
    with pytest.raises(ValueError, match="'dark'"):
        paint("dark", 0, "x", (3, 4, 4))
    with pytest.raises(ValueError, match="'counts lost'"):
        malformed(faults=["counts absent", "counts lost"])


@few
@given(st.sampled_from(FAMILIES), st.data())
def test_configs_are_those_of_a_family(family: str, data: st.DataObject) -> None:
    """Configurations are of the family asked for, and few enough to be reused."""
    config = data.draw(configs(family=family))
    assert config.family == family
    assert config in [EncoderConfig.tiny(family, **changes) for changes in fitting(family)]


def fitting(family: str) -> list[dict[str, Any]]:
    """The variants, without what a family has no choice in."""
    passed = {"downsampler_stride"} if family != "step3" else set()
    return [{k: v for k, v in variant.items() if k not in passed} for variant in VARIANTS]


def test_variants_reach_every_head_dim_and_both_strides() -> None:
    """The variants have head dims 8, 12, 16 and 96, odd and even grids and both strides."""
    found = [EncoderConfig.tiny("step3", **variant) for variant in VARIANTS]
    assert {config.head_dim for config in found} == {8, 12, 16, 96}
    assert {config.grid % 2 for config in found} == {0, 1}
    assert {config.downsampler_stride for config in found} == {1, 2}


@few
@given(
    items(
        config=TINY,
        dtype=torch.bfloat16,
        images=(2, 4),
        patches=(1, 2),
        grids=[(2, 3), (4, 4)],
        grouping=["split", "mixed"],
        count_forms=tensor_forms(dtypes=[torch.int16]),
        unknown_keys=True,
    )
)
def test_items_take_their_options(drawn: tuple[Any, ...]) -> None:
    """Items follow dtype, bounds, grids, form of counts, grouping and unknown keys."""
    assert 2 <= sum(len(item.feature) for item in drawn) <= 4
    sizes = {tuple(item.feature.shape[1:]) for item in drawn}
    assert sizes <= {(3, 4, 6), (3, 8, 8)}
    assert len(sizes) == 1
    for item in drawn:
        data = item.model_specific_data
        assert item.feature.dtype == torch.bfloat16
        assert data["num_patches"].dtype == torch.int16
        assert len(data["patch_pixel_values"]) == data["num_patches"].sum()
        assert any(key.startswith("unknown") for key in data)


@pytest.mark.parametrize(
    ("empty", "wanted"),
    [("absent", "absent"), ("none", None), ("zero-rows", (0, 3)), ("empty-list", [])],
)
def test_empty_patches_are_said_in_four_ways(empty: str, wanted: Any) -> None:
    """An item without patches leaves them out, or has None, zero rows or an empty list."""
    strategy = items(config=TINY, images=(1, 1), patches=(0, 0), empty_patches=[empty])
    (item,) = find(strategy, lambda _: True)
    found = item.model_specific_data.get("patch_pixel_values", "absent")
    assert (tuple(found.shape[:2]) if isinstance(found, Tensor) else found) == wanted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_change_memory_and_no_value(layout: str) -> None:
    """Every layout but the plain one has other strides; all but `expanded` have equal pixels."""
    plain = torch.stack([paint("normal", 0, f"{index}", (3, 8, 6)) for index in range(2)])
    laid = LAYOUTS[layout](plain)
    assert laid.is_contiguous() == (layout == "contiguous")
    expected = plain[:1].expand(2, -1, -1, -1) if layout == "expanded" else plain
    assert torch.equal(laid, expected)


@few
@given(items(config=TINY, total=1, layouts=["stepped"]))
def test_items_have_the_layout_asked_for(drawn: tuple[Any, ...]) -> None:
    """Both feature and patches are laid out as asked."""
    for item in drawn:
        assert item.feature.stride(-1) == 2
        assert item.model_specific_data["patch_pixel_values"].stride(-1) == 2


@pytest.mark.parametrize(
    "forms",
    [
        list_forms(),
        numpy_forms(),
        tensor_forms(dtypes=INTEGER_DTYPES),
        tensor_forms(shape="row"),
        tensor_forms(shape="column"),
    ],
    ids=["lists", "numpy", "flat", "row", "column"],
)
def test_forms_mean_their_values(forms: st.SearchStrategy[Callable[[Sequence[int]], Any]]) -> None:
    """Each form of the counts reads as the counts that it was made of."""

    @few
    @given(counts(images=(1, 4), patches=(0, 5)), forms)
    def reads(values: tuple[int, ...], form: Callable[[Sequence[int]], Any]) -> None:
        assert read_counts(form(list(values))) == values

    reads()


@few
@given(counts(images=(4, 4), patches=(0, 5)), tensor_forms(shape="square"))
def test_a_square_form_is_read_row_by_row(
    values: tuple[int, ...], form: Callable[[Sequence[int]], Any]
) -> None:
    """Four counts in a square of two by two read in their order."""
    assert form(list(values)).shape == (2, 2)
    assert read_counts(form(list(values))) == values


@pytest.mark.parametrize(
    "forms", [scalar_forms(), tensor_forms(shape="scalar")], ids=["int", "0-d"]
)
def test_scalar_forms_mean_one_value(forms: st.SearchStrategy[Any]) -> None:
    """A bare int and a 0-d tensor read as one count."""
    form = find(forms, lambda _: True)
    assert read_counts(form([3])) == (3,)


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_are_well_formed(family: str) -> None:
    """The reference answers every case that is drawn, with the rows of all its pictures."""

    @few
    @given(
        cases(
            family=family,
            variants=VARIANTS[:2],
            grouping=["bundled", "split", "mixed"],
            count_forms=list_forms(),
            empty_patches=["absent", "none", "zero-rows", "empty-list"],
            layouts=["contiguous", "sliced", "expanded"],
        )
    )
    def answers(case: Case) -> None:
        encoder = ReferenceEncoder(case.config, case.weights)
        pictures = [picture for image in case.images for picture in image.pictures]
        rows = sum(case.config.rows(*picture.shape[1:]) for picture in pictures)
        result = encoder.get_image_feature(case.items)
        assert result.shape == (rows, case.config.text_width)
        assert torch.equal(result, encoder.get_image_feature(case.plain.items))

    answers()


@few
@given(
    cases(
        family="step3",
        dtype=torch.float16,
        regimes=["rotary"],
        placement=Placement(patches="cpu"),
        pixel_dtypes=[torch.float64],
        images=(3, 3),
    )
)
def test_cases_take_their_options(case: Case) -> None:
    """Cases follow family, dtype, regime, placement and the dtype of pixels."""
    assert case.config.family == "step3"
    assert case.dtype == torch.float16
    assert case.weights.label.startswith("rotary")
    assert case.placement.patches == "cpu"
    assert case.items[0].feature.dtype == torch.float64
    assert len(case.images) == 3


def test_square_grids_are_native_and_below() -> None:
    """The grids drawn by default are the native one and the two below it, of both parities."""
    assert square_grids(TINY) == ((4, 4), (3, 3), (2, 2))
    assert square_grids(EncoderConfig.tiny("step3", image_size=4)) == ((2, 2),)


def test_weights_are_drawn_once() -> None:
    """The same configuration, seed and regime give the very same weights."""
    assert Weights.drawn(TINY, 1) is Weights.drawn(TINY, 1)
    assert Weights.drawn(TINY, 1, "rotary") is not Weights.drawn(TINY, 1)
