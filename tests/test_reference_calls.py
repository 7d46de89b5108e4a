"""The reference's calls: what comes back, and what they leave alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from reference import FAMILIES, EncoderConfig, ImageItem, ItemError, ReferenceEncoder, init_weights
from strategies import paint
from strategies.encoding import encode

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)

each_family = pytest.mark.parametrize("family", FAMILIES)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def build(family: str, dtype: torch.dtype = torch.float32, **changes: Any) -> ReferenceEncoder:
    """A small encoder."""
    config = EncoderConfig.tiny(family, **changes)
    return ReferenceEncoder(config, init_weights(config, 0), dtype=dtype)


def pixels(count: int, height: int = 8, width: int = 8, label: str = "") -> Tensor:
    """Pictures, `(count, 3, height, width)`."""
    drawn = [paint("normal", 1, f"{label}{index}", (3, height, width)) for index in range(count)]
    return torch.stack(drawn)


def side(family: str, cells: int, stride: int) -> int:
    """Rows along a side of some cells, as the contract puts it (LA-01)."""
    if family == "step3":
        return math.ceil((math.floor((cells - 2) / stride) + 1) / 2)
    return math.ceil(math.ceil(cells / 2) / 2)


@pytest.mark.parametrize("grid", [(4, 4), (5, 5), (6, 6), (7, 3), (2, 9), (13, 13)], ids=str)
@pytest.mark.parametrize(
    ("family", "stride"), [("step3", 1), ("step3", 2), ("step3-vl-10b", 2), ("step3p7", 2)]
)
def test_rows_follow_the_contract(family: str, grid: tuple[int, int], stride: int) -> None:
    """A picture gives the rows of LA-01, and the configuration counts them the same."""
    encoder = build(family, downsampler_stride=stride)
    rows = side(family, grid[0], stride) * side(family, grid[1], stride)
    size = (grid[0] * 2, grid[1] * 2)
    assert encoder.config.rows(*size) == rows
    assert encoder.encode(pixels(2, *size)).shape == (2, rows, encoder.config.text_width)


@each_dtype
@each_family
def test_the_result_has_the_models_dtype_and_the_contracts_shape(
    family: str, dtype: torch.dtype
) -> None:
    """Items of any float dtype give sum(count*P + T) rows in the model's dtype."""
    encoder = build(family, dtype)
    items = [
        ImageItem(
            pixels(2).double(), {"num_patches": [1, 2], "patch_pixel_values": pixels(3, 6, 6)}
        ),
        ImageItem(pixels(1).half(), {"num_patches": 0}),
    ]
    result = encoder.get_image_feature(items)
    rows = encoder.config.rows
    assert result.shape == (3 * rows(6, 6) + 3 * rows(8, 8), encoder.config.text_width)
    assert result.dtype == dtype
    assert result.is_contiguous()
    assert not result.requires_grad


@each_dtype
def test_no_items_give_no_rows(dtype: torch.dtype) -> None:
    """No items, and an item of no images, give an empty result of the right width (MA-10)."""
    encoder = build("step3", dtype)
    nothing = ImageItem(pixels(1)[:0], {"num_patches": []})
    for items in ([], [nothing], [nothing, nothing]):
        result = encoder.get_image_feature(items)
        assert (tuple(result.shape), result.dtype) == ((0, encoder.config.text_width), dtype)


@each_dtype
@each_family
def test_rows_are_bit_equal_whatever_shares_the_call(family: str, dtype: torch.dtype) -> None:
    """Each picture alone, in a bundle or among items gives the same bits (BA-05)."""
    encoder = build(family, dtype, image_size=10, width=24, mlp_width=36)
    thumbnails, patches = pixels(3, 10, 10, "thumbnail"), pixels(3, 6, 6, "patch")
    alone = [
        encoder.get_image_feature([ImageItem(picture[None], {"num_patches": 0})])
        for picture in (patches[0], thumbnails[0], thumbnails[1], *patches[1:], thumbnails[2])
    ]
    bundle = ImageItem(thumbnails, {"num_patches": [1, 0, 2], "patch_pixel_values": patches})
    split = [
        ImageItem(thumbnails[:1], {"num_patches": [1], "patch_pixel_values": patches[:1]}),
        ImageItem(thumbnails[1:2], {"num_patches": [0]}),
        ImageItem(thumbnails[2:], {"num_patches": [2], "patch_pixel_values": patches[1:]}),
    ]
    for items in ([bundle], split):
        assert torch.equal(encoder.get_image_feature(items), torch.cat(alone))


@each_family
def test_the_same_call_twice(family: str) -> None:
    """A second call gives the same bits, in memory of its own (SE-02, SE-03)."""
    encoder = build(family)
    items = [ImageItem(pixels(2), {"num_patches": [0, 0]})]
    one = encoder.get_image_feature(items)
    kept = one.clone()
    two = encoder.get_image_feature(items)
    assert torch.equal(one, two)
    two.zero_()
    assert torch.equal(one, kept)


def fingerprint(items: list[ImageItem]) -> list[str]:
    """A hash of each item."""
    return [encode([item.feature, item.model_specific_data]).digest() for item in items]


@pytest.mark.parametrize("counts", [[1, 2], [1, 1], None], ids=str)
def test_the_callers_items_stay_as_they_were(counts: list[int] | None) -> None:
    """Neither tensors nor dicts change, in a call that returns and in calls that raise (SE-01)."""
    data = {"num_patches": counts, "patch_pixel_values": pixels(3, 6, 6), "other": [1]}
    items = [ImageItem(pixels(2), data)]
    before = fingerprint(items)
    try:
        build("step3p7").get_image_feature(items)
    except ItemError:
        assert counts != [1, 2]
    assert fingerprint(items) == before


def sliced(pictures: Tensor) -> Tensor:
    """The same pictures as a window of a larger tensor."""
    return torch.nn.functional.pad(pictures, (1, 2, 2, 1), value=9.0)[..., 2:-1, 1:-2]


def inferred(pictures: Tensor) -> Tensor:
    """The same pictures from inference mode."""
    with torch.inference_mode():
        return pictures.clone()


@pytest.mark.parametrize(
    "change",
    [
        sliced,
        inferred,
        lambda x: x.contiguous(memory_format=torch.channels_last),
        lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
        lambda x: x.clone().requires_grad_(),
        lambda x: x.double(),
    ],
    ids=["sliced", "inference mode", "channels last", "transposed", "requires grad", "float64"],
)
@each_family
def test_pixels_in_any_memory(family: str, change: Callable[[Tensor], Tensor]) -> None:
    """Strides, grad, inference mode and a wider dtype change no bit (SE-06, SE-07)."""
    encoder = build(family)
    feature, patches = pixels(2), pixels(2, 6, 6)
    data = {"num_patches": [2, 0], "patch_pixel_values": patches}
    expected = encoder.get_image_feature([ImageItem(feature, data)])
    changed = {**data, "patch_pixel_values": change(patches)}
    assert torch.equal(encoder.get_image_feature([ImageItem(change(feature), changed)]), expected)


def test_after_an_error_the_next_call_is_right() -> None:
    """An error leaves nothing behind (SE-04)."""
    encoder = build("step3-vl-10b")
    sound = [ImageItem(pixels(1), {"num_patches": 1, "patch_pixel_values": pixels(1, 6, 6)})]
    expected = encoder.get_image_feature(sound)
    with pytest.raises(ItemError):
        encoder.get_image_feature([*sound, ImageItem(pixels(1), {"num_patches": 3})])
    assert torch.equal(encoder.get_image_feature(sound), expected)


def test_grad_mode_and_random_numbers_are_left_alone() -> None:
    """A call neither records gradients nor draws random numbers (SE-05)."""
    encoder, state = build("step3"), torch.get_rng_state()
    with torch.enable_grad():
        encoder.get_image_feature([ImageItem(pixels(1).requires_grad_(), {"num_patches": 0})])
        assert torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.complex64], ids=str)
def test_a_dtype_that_is_no_float_is_refused(dtype: torch.dtype) -> None:
    """An encoder is built in float64, float32, bfloat16 or float16 only."""
    with pytest.raises(ValueError, match=str(dtype)):
        build("step3", dtype)


def test_not_a_number_stays_in_its_picture() -> None:
    """NaN in one picture leaves every row of the others as they were (BA-04)."""
    encoder = build("step3-vl-10b")
    feature = pixels(3)
    spoilt = feature.clone()
    spoilt[1, 0, 0, 0] = math.nan
    sound, found = (
        encoder.get_image_feature([ImageItem(pictures, {"num_patches": [0, 0, 0]})]).chunk(3)
        for pictures in (feature, spoilt)
    )
    assert torch.equal(found[0], sound[0])
    assert not bool(found[1].isfinite().all())
    assert torch.equal(found[2], sound[2])
