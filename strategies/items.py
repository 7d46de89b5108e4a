"""Items: what a caller may hand over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from hypothesis import strategies as st
from torch import Tensor

from reference import EncoderConfig, ImageItem
from strategies.case import Image, plain_item
from strategies.choice import among, seeds
from strategies.counts import Form, counts
from strategies.pixels import paint

Grid = tuple[int, int]
Grouping = Literal["bundled", "split", "mixed"]

UNKNOWN_KEYS: dict[str, Any] = {
    "unknown_tensor": torch.arange(3),
    "unknown_list": [(7, 9)],
    "unknown_text": "kept",
    "unknown_none": None,
}


def square_grids(config: EncoderConfig) -> tuple[Grid, ...]:
    """The native grid and the two below it: even and odd, native and not."""
    return tuple((side, side) for side in range(config.grid, max(config.grid - 3, 1), -1))


@st.composite
def items(
    draw: st.DrawFn,
    /,
    *,
    config: EncoderConfig,
    dtype: torch.dtype = torch.float32,
    images: tuple[int, int] = (1, 3),
    patches: tuple[int, int] = (0, 2),
    total: int = 0,
    grids: Sequence[Grid] | None = None,
    profiles: Sequence[str] = ("normal", "gradient", "checkerboard", "bright-cell"),
    grouping: Sequence[Grouping] = ("bundled",),
    count_forms: st.SearchStrategy[Form] | None = None,
    empty_patches: Sequence[str] = ("absent",),
    layouts: Sequence[str] = ("contiguous",),
    unknown_keys: bool = False,
) -> tuple[ImageItem, ...]:
    """Well-formed items of one request; all thumbnails have one size, all patches another.

    Args:
        draw: given by Hypothesis.
        config: of the encoder.
        dtype: of all pixels.
        images: the least and the most images.
        patches: the least and the most patches of one image.
        total: the least number of patches in all.
        grids: cells of thumbnails and of patches, (rows, columns), among which to draw;
            by default `square_grids(config)`.
        profiles: of the pictures, see `strategies.pixels`.
        grouping: one item for all images, one for each, or a mix.
        count_forms: how `num_patches` is written; by default a list of ints.
        empty_patches: how an item without patches says so; see `EMPTY_PATCHES`.
        layouts: of pixels in memory; see `LAYOUTS`.
        unknown_keys: whether items carry keys that no encoder knows.
    """
    found = draw(counts(images=images, patches=patches, total=total))
    options = tuple(grids or square_grids(config))
    thumbnail, patch = draw(among(options)), draw(among(options))
    profile, seed = draw(among(tuple(profiles))), draw(seeds())
    pictures = [
        _image(config, dtype, profile, f"{seed}/{index}", seed, count, thumbnail, patch)
        for index, count in enumerate(found)
    ]
    groups = _grouped(pictures, draw(among(tuple(grouping))))
    form: Form = draw(count_forms) if count_forms is not None else list
    empty = EMPTY_PATCHES[draw(among(tuple(empty_patches)))]
    layout = LAYOUTS[draw(among(tuple(layouts)))]
    extra = UNKNOWN_KEYS if unknown_keys else {}
    zero_rows = torch.zeros(0, 3, *_pixels(config, patch), dtype=dtype)
    return tuple(_item(group, form, empty, layout, zero_rows, extra) for group in groups)


def _image(
    config: EncoderConfig,
    dtype: torch.dtype,
    profile: str,
    label: str,
    seed: int,
    count: int,
    thumbnail: Grid,
    patch: Grid,
) -> Image:
    def picture(name: str, grid: Grid) -> Tensor:
        return paint(profile, seed, f"{label}/{name}", (3, *_pixels(config, grid))).to(dtype)

    own = [picture(f"patch {index}", patch) for index in range(count)]
    return Image(picture("thumbnail", thumbnail), torch.stack(own) if own else None)


def _pixels(config: EncoderConfig, grid: Grid) -> tuple[int, int]:
    return grid[0] * config.patch_size, grid[1] * config.patch_size


def _grouped(images: list[Image], grouping: Grouping) -> list[list[Image]]:
    if grouping == "bundled":
        return [images]
    if grouping == "split":
        return [[image] for image in images]
    return [group for group in (images[:2], images[2:3], images[3:]) if group]


def _item(
    images: Sequence[Image],
    form: Form,
    empty: Callable[[Tensor], dict[str, Any]],
    layout: Callable[[Tensor], Tensor],
    zero_rows: Tensor,
    extra: dict[str, Any],
) -> ImageItem:
    plain = plain_item(images)
    data = {"num_patches": form([image.count for image in images])}
    if "patch_pixel_values" in plain.model_specific_data:
        data["patch_pixel_values"] = layout(plain.model_specific_data["patch_pixel_values"])
    else:
        data |= empty(zero_rows)
    return ImageItem(layout(plain.feature), {**extra, **data})


def _absent(zero_rows: Tensor) -> dict[str, Any]:  # noqa: ARG001
    return {}


def _none(zero_rows: Tensor) -> dict[str, Any]:  # noqa: ARG001
    return {"patch_pixel_values": None}


def _zero_rows(zero_rows: Tensor) -> dict[str, Any]:
    return {"patch_pixel_values": zero_rows}


def _empty_list(zero_rows: Tensor) -> dict[str, Any]:  # noqa: ARG001
    return {"patch_pixel_values": []}


EMPTY_PATCHES: dict[str, Callable[[Tensor], dict[str, Any]]] = {
    "absent": _absent,
    "none": _none,
    "zero-rows": _zero_rows,
    "empty-list": _empty_list,
}


def _contiguous(pixels: Tensor) -> Tensor:
    return pixels


def _sliced(pixels: Tensor) -> Tensor:
    """A window of a larger tensor, every side cut."""
    larger = torch.nn.functional.pad(pixels, (1, 2, 2, 1, 1, 0, 1, 1), value=7.0)
    return larger[1:-1, 1:, 2:-1, 1:-2]


def _channels_last(pixels: Tensor) -> Tensor:
    return pixels.contiguous(memory_format=torch.channels_last)


def _transposed(pixels: Tensor) -> Tensor:
    return pixels.transpose(2, 3).contiguous().transpose(2, 3)


def _stepped(pixels: Tensor) -> Tensor:
    """Every second column of a tensor twice as wide."""
    return pixels.repeat_interleave(2, dim=3)[..., ::2]


def _expanded(pixels: Tensor) -> Tensor:
    """The first picture for all, with stride zero."""
    return pixels[:1].expand_as(pixels)


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": _contiguous,
    "sliced": _sliced,
    "channels-last": _channels_last,
    "transposed": _transposed,
    "stepped": _stepped,
    "expanded": _expanded,
}
