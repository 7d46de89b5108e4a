"""Tiny implementations: right, right in another way, and wrong in one way each.

They are named on the command line as `tests/miniatures.py:thumbnail_first`.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor
from torch.nn import functional as F

from reference import FAMILIES, ReferenceEncoder
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower


class Miniature:
    """An implementation of one encoder class."""

    version = "1.0"
    interface = "items"

    def __init__(self, name: str, encoder: type, families: tuple[str, ...] = FAMILIES) -> None:
        self.name = name
        self.encoder = encoder
        self.families = families

    def build(self, config, weights, *, device, dtype):
        """Build an encoder; names may carry a prefix."""
        named = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
        return self.encoder(config, named, device=device, dtype=dtype)


class ThumbnailFirst(ReferenceEncoder):
    """Each image's thumbnail stands before its patches."""

    def merge(self, counts, patches, thumbnails):  # noqa: D102
        rows, start = [], 0
        for count, thumbnail in zip(counts, thumbnails, strict=True):
            rows += [thumbnail, *patches[start : start + count]]
            start += count
        return rows


class _HeightFirstTower(PerceptionTower):
    def angles(self, grid: tuple[int, int]) -> Tensor:
        width_half, height_half = super().angles(grid).chunk(2, dim=1)
        return torch.cat([height_half, width_half], dim=1)


class HeightFirst(ReferenceEncoder):
    """The first half of the channels turns with the row."""

    towers = {**ReferenceEncoder.towers, "step3-vl-10b": _HeightFirstTower}  # noqa: RUF012


class OneItem(ReferenceEncoder):
    """A call takes exactly one item."""

    def get_image_feature(self, items):  # noqa: D102
        assert len(items) == 1
        return super().get_image_feature(items)


class OneTypedItem(ReferenceEncoder):
    """A call takes exactly one item, and says so in another way."""

    def get_image_feature(self, items):  # noqa: D102
        if len(items) != 1:
            raise TypeError("one item only")
        return super().get_image_feature(items)


class Zeros(ReferenceEncoder):
    """The result has the right shape and is zero."""

    def get_image_feature(self, items):  # noqa: D102
        return torch.zeros_like(super().get_image_feature(items))


class IntegerPixels(ReferenceEncoder):
    """Integer pixels are cast without a word, which the strict level forbids."""

    def require_pixels(self, name, pixels):  # noqa: D102
        super().require_pixels(name, pixels.float() if isinstance(pixels, Tensor) else pixels)


class Messages(ReferenceEncoder):
    """The documented errors have other messages."""

    def get_image_feature(self, items):  # noqa: D102
        try:
            return super().get_image_feature(items)
        except ValueError as error:
            raise ValueError("something is missing") from error


class _Fused:
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class Batched(ReferenceEncoder):
    """Right in another way: all pictures of a tensor at once, fused attention."""

    towers = {  # noqa: RUF012
        "step3": type("FusedStep3", (_Fused, Step3Tower), {}),
        "step3-vl-10b": type("FusedPerception", (_Fused, PerceptionTower), {}),
        "step3p7": type("FusedPerception", (_Fused, PerceptionTower), {}),
    }

    def pictures(self, name, pixels):  # noqa: D102
        self.require_pixels(name, pixels)
        return list(self.encode(pixels)) if len(pixels) else []


class Unbuildable:
    """No encoder of it can be built."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("no kernel for this machine\nand a second line")


class Crashes(ReferenceEncoder):
    """A call ends the process."""

    def get_image_feature(self, items):  # noqa: ARG002, D102
        ctypes.string_at(0)


class CrashesOnAnInt(ReferenceEncoder):
    """A count that is an int ends the process."""

    def get_image_feature(self, items):  # noqa: D102
        if isinstance(items[0].model_specific_data.get("num_patches"), int):
            ctypes.string_at(0)
        return super().get_image_feature(items)


right = Miniature("right", ReferenceEncoder)
batched = Miniature("batched", Batched)
thumbnail_first = Miniature("thumbnail-first", ThumbnailFirst)
height_first = Miniature("height-first", HeightFirst)
one_item = Miniature("one-item", OneItem)
one_typed_item = Miniature("one-typed-item", OneTypedItem)
zeros = Miniature("zeros", Zeros)
integer_pixels = Miniature("integer-pixels", IntegerPixels)
messages = Miniature("messages", Messages)
unbuildable = Miniature("unbuildable", Unbuildable)
thumbnail_first_in_one_family = Miniature("thumbnail-first", ThumbnailFirst, ("step3-vl-10b",))
one_family = Miniature("one-family", ReferenceEncoder, ("step3-vl-10b",))
crashes = Miniature("crashes", Crashes)
crashes_on_an_int = Miniature("crashes-on-an-int", CrashesOnAnInt)
not_an_implementation = 7


def made() -> Miniature:
    """An implementation made by a callable."""
    return Miniature("made", ReferenceEncoder)
