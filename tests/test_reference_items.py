"""The reference's reading of items: strict about malformed ones, open to every accepted form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from reference import (
    FAMILIES,
    CountTypeError,
    EncoderConfig,
    ImageCountError,
    ImageItem,
    IntegerPixelsError,
    ItemError,
    MissingCountsError,
    MissingPatchesError,
    NegativeCountError,
    PatchRowsError,
    PixelsError,
    ReferenceEncoder,
    init_weights,
    read_counts,
)
from strategies import FAULTS, malformed, paint

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)

NO_COUNTS = "Step3-VL image item is missing num_patches."
NO_PATCHES = "Step3-VL image item has num_patches > 0 but no patch_pixel_values."

ERRORS: dict[str, type[ItemError]] = {
    "counts absent": MissingCountsError,
    "counts absent beside patches": MissingCountsError,
    "counts None": MissingCountsError,
    "counts None beside patches": MissingCountsError,
    "counts are bools": CountTypeError,
    "counts are a bool tensor": CountTypeError,
    "counts are strings": CountTypeError,
    "counts are fractions": CountTypeError,
    "counts are a tensor of fractions": CountTypeError,
    "counts are NaN": CountTypeError,
    "count negative": NegativeCountError,
    "fewer counts than thumbnails": ImageCountError,
    "more counts than thumbnails": ImageCountError,
    "patches absent": MissingPatchesError,
    "patches None": MissingPatchesError,
    "patches of zero rows": MissingPatchesError,
    "a patch row too few": PatchRowsError,
    "a patch row too many": PatchRowsError,
    "feature of rank 3": PixelsError,
    "feature of rank 5": PixelsError,
    "feature of one channel": PixelsError,
    "feature of four channels": PixelsError,
    "feature with channels last": PixelsError,
    "patches of rank 3": PixelsError,
    "patches of one channel": PixelsError,
    "integer feature": IntegerPixelsError,
    "integer patches": IntegerPixelsError,
}


def tiny(family: str = "step3-vl-10b", dtype: torch.dtype = torch.float32) -> ReferenceEncoder:
    """A small encoder."""
    config = EncoderConfig.tiny(family)
    return ReferenceEncoder(config, init_weights(config, 0), dtype=dtype)


def pixels(count: int, side: int = 8, label: str = "") -> Tensor:
    """Pictures, `(count, 3, side, side)`."""
    drawn = [paint("normal", 1, f"{label}{index}", (3, side, side)) for index in range(count)]
    return torch.stack(drawn) if drawn else torch.zeros(0, 3, side, side)


def item(counts: Any, patches: Any = None, images: int = 1) -> ImageItem:
    """An item with counts in any form; patches that are None are left out."""
    data = {"num_patches": counts}
    if patches is not None:
        data["patch_pixel_values"] = patches
    return ImageItem(pixels(images), data)


def test_every_fault_has_its_error() -> None:
    """The errors expected below are those of all faults that `strategies` knows."""
    assert ERRORS.keys() == FAULTS.keys()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fault", ERRORS)
def test_each_fault_raises_its_own_error(family: str, fault: str) -> None:
    """Every malformed item raises the class made for its cause, a ValueError."""

    @settings(max_examples=4, deadline=None, derandomize=True, database=None)
    @given(malformed(faults=[fault], family=family))
    def raises(case: Any) -> None:
        encoder = ReferenceEncoder(case.config, case.weights)
        with pytest.raises(ItemError) as caught:
            encoder.get_image_feature(case.items)
        assert caught.type is ERRORS[fault]
        assert isinstance(caught.value, ValueError)

    raises()


@pytest.mark.parametrize("data", [{}, {"num_patches": None}], ids=["absent", "None"])
def test_the_message_for_missing_counts(data: dict[str, Any]) -> None:
    """Missing counts raise the documented message, word for word (NP-01, NP-02)."""
    with pytest.raises(MissingCountsError) as caught:
        tiny().get_image_feature([ImageItem(pixels(1), data)])
    assert str(caught.value) == NO_COUNTS


@pytest.mark.parametrize("patches", [None, pixels(0), []], ids=["absent", "zero rows", "empty"])
def test_the_message_for_missing_patches(patches: Any) -> None:
    """Counted patches that are not there raise the documented message, word for word (PP-02)."""
    with pytest.raises(MissingPatchesError) as caught:
        tiny().get_image_feature([item([2], patches)])
    assert str(caught.value) == NO_PATCHES


@pytest.mark.parametrize(
    "counts",
    [
        True,
        "1",
        b"1",
        1.0,
        1.5,
        float("nan"),
        [True],
        [None],
        [[1]],
        [torch.tensor([1])],
        [torch.tensor(1.0)],
        torch.tensor(True),
        torch.tensor([1.0]),
        np.array([1.0]),
        np.array([True]),
        np.bool_(True),
        np.float32(1),
        {"a": 1},
        {1},
    ],
    ids=repr,
)
def test_what_is_no_count(counts: Any) -> None:
    """Anything but integers is refused, bools and whole floats included (NP-09)."""
    with pytest.raises(CountTypeError, match="counts are integers"):
        read_counts(counts)


@pytest.mark.parametrize(
    "counts", [-1, [0, -2], (3, -1), torch.tensor([-1]), np.array([1, -1]), [torch.tensor(-4)]]
)
def test_negative_counts_name_the_value(counts: Any) -> None:
    """A negative count is refused in every form, and the message holds it (MA-03)."""
    with pytest.raises(NegativeCountError, match=r"-[124]"):
        read_counts(counts)


def accepted(values: list[int]) -> list[Any]:
    """Every accepted form of some counts."""
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    flat = [torch.tensor(values, dtype=kind) for kind in kinds]
    forms: list[Any] = [
        values,
        tuple(values),
        [torch.tensor(value) for value in values],
        tuple(torch.tensor(value, dtype=torch.uint8) for value in values),
        [torch.tensor(v) if i % 2 else v for i, v in enumerate(values)],
        [np.int16(v) if i % 2 else v for i, v in enumerate(values)],
        [np.uint64(v) for v in values],
        *flat,
        torch.tensor(values).reshape(1, -1),
        torch.tensor(values).reshape(-1, 1),
        torch.tensor(values).repeat_interleave(2)[::2],
        np.array(values, dtype=np.int32),
        np.array(values, dtype=np.uint8).reshape(-1, 1),
    ]
    if len(values) == 4:
        forms.append(torch.tensor(values).reshape(2, 2).T.contiguous().T)
    if len(values) == 1:
        forms += [values[0], torch.tensor(values[0]), np.int64(values[0]), np.array(values[0])]
    return forms


@given(st.lists(st.integers(0, 127), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_every_accepted_form_means_its_values(values: list[int]) -> None:
    """Ints, lists, tuples, tensors of any rank and integer dtype, NumPy and mixes agree."""
    for form in accepted(values):
        found = read_counts(form)
        assert found == tuple(values)
        assert all(type(count) is int for count in found)


@pytest.mark.parametrize("empty", [[], (), torch.tensor([]), np.array([])], ids=repr)
def test_no_counts_at_all(empty: Any) -> None:
    """An empty list, and the float tensor that torch makes of one, hold no counts."""
    assert read_counts(empty) == ()


@pytest.mark.parametrize("values", [[2], [0], [1, 2], [0, 1, 0, 2]], ids=str)
def test_accepted_forms_give_the_same_result(values: list[int]) -> None:
    """The result does not depend on how the counts are written."""
    encoder = tiny()
    patches = pixels(sum(values), 6, "patch ") if any(values) else None
    expected = encoder.get_image_feature([item(values, patches, len(values))])
    for form in accepted(values):
        found = encoder.get_image_feature([item(form, patches, len(values))])
        assert torch.equal(found, expected)


@pytest.mark.parametrize(
    "patches", [None, pixels(0), [], ()], ids=["None", "rows", "list", "tuple"]
)
def test_absent_patches(patches: Any) -> None:
    """With no patches counted None, zero rows and an empty list are as good as absent (PP-01)."""
    encoder = tiny()
    data = {"num_patches": [0], "patch_pixel_values": patches}
    found = encoder.get_image_feature([ImageItem(pixels(1), data)])
    assert torch.equal(found, encoder.get_image_feature([item([0])]))


@pytest.mark.parametrize("side", [(1, 8), (8, 1), (0, 8)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_without_a_cell(family: str, side: tuple[int, int]) -> None:
    """A picture smaller than one cell, in `step3` than two, is refused with its size."""
    with pytest.raises(PixelsError, match=f"{side[0]}x{side[1]} pixels"):
        tiny(family).get_image_feature([ImageItem(torch.ones(1, 3, *side), {"num_patches": 0})])


def test_one_cell_is_too_small_for_step3() -> None:
    """The kernel of two of `step3` needs two cells; the others compute a single one."""
    one = [ImageItem(torch.ones(1, 3, 2, 2), {"num_patches": 0})]
    assert tiny("step3p7").get_image_feature(one).shape == (1, 12)
    with pytest.raises(PixelsError, match="each side needs 4"):
        tiny("step3").get_image_feature(one)


@pytest.mark.parametrize("bad", [None, [pixels(1)], np.ones((1, 3, 8, 8)), "pixels"], ids=repr)
def test_features_that_are_no_tensor(bad: Any) -> None:
    """A feature that is no tensor is refused, and the message says what it is."""
    with pytest.raises(PixelsError, match=type(bad).__name__):
        tiny().get_image_feature([ImageItem(bad, {"num_patches": 0})])


def test_one_bad_item_spoils_the_call() -> None:
    """A malformed item among sound ones is refused, wherever it stands."""
    sound, bad = item([0]), item([0, 0])
    for items in ([bad, sound], [sound, bad], [sound, bad, sound]):
        with pytest.raises(ImageCountError):
            tiny().get_image_feature(items)
