"""Faults in how the items of a call are handled, and what shares a batch."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise, mean_of, with_data

Counts = Sequence[int]
Rows = list[Tensor]


class ItemsReversed(Stepwise):
    """The items of a call stand in reverse."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items[::-1])


class OneItemOnly(Stepwise):
    """A call has exactly one item."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        assert len(items) == 1
        return super().get_image_feature(items)


class FirstItemOnly(Stepwise):
    """Items after the first are passed over."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items[:1])


class LastItemOnly(Stepwise):
    """The result is that of the last item."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items[-1:])


class ItemsSorted(Stepwise):
    """Items are sorted by how bright they are, and not put back."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(sorted(items, key=lambda item: mean_of(item.feature)))


class CursorAcrossItems(Stepwise):
    """The cursor into the patches of an item starts where the item before ended."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.start = 0
        return super().get_image_feature(items)

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        lost, self.start = self.start, self.start + sum(counts)
        return super().merge(counts, patches[lost:], thumbnails)


class PatchesOfFirstItem(Stepwise):
    """The patches of the first item are every item's, as far as they go."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.first: Rows = []
        return super().get_image_feature(items)

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        self.first = self.first or patches
        enough = len(self.first) >= len(patches)
        return super().merge(counts, self.first if enough else patches, thumbnails)


class PatchesOfItemsJoined(Stepwise):
    """The patches of all items stand before the thumbnails of all."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        if len(items) < 2:
            return super().get_image_feature(items)
        merged = [(self.patches(i.model_specific_data.get("patch_pixel_values")), i) for i in items]
        bare = [
            with_data(i, num_patches=[0] * len(i.feature), patch_pixel_values=None) for i in items
        ]
        return torch.cat(
            [*(row for rows, _ in merged for row in rows), super().get_image_feature(bare)]
        )


class UnknownKeysRefused(Stepwise):
    """The data of an item are keyword arguments of a function."""

    def counts(self, data: dict[str, Any]) -> Sequence[int]:
        return self.known(**data)

    def known(self, num_patches: Any = None, patch_pixel_values: Any = None) -> Sequence[int]:  # noqa: ARG002
        """The counts, from the keywords that are known."""
        return super().counts({"num_patches": num_patches})


class AllDataMoved(Stepwise):
    """Whatever is not None and no count is moved to the device."""

    def received(self, item: Any) -> Any:
        data = item.model_specific_data
        skipped = ("num_patches", "patch_pixel_values")
        moved = {
            k: v.to(self.device) for k, v in data.items() if k not in skipped and v is not None
        }
        return with_data(item, **moved)


class AnyTensorIsPatches(Stepwise):
    """The first tensor of the data is the patches, whatever its key."""

    def received(self, item: Any) -> Any:
        data = item.model_specific_data
        tensors = [v for k, v in data.items() if isinstance(v, Tensor) and k != "num_patches"]
        return with_data(item, patch_pixel_values=tensors[0]) if tensors else item


class OrderlessCache(Stepwise):
    """A call is answered from a cache whose key is the same for items in any order."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.answers: dict[object, Tensor] = getattr(self, "answers", {})
        key = tuple(sorted(self.hash_of(item) for item in items))
        if key not in self.answers:
            self.answers[key] = super().get_image_feature(items)
        return self.answers[key].clone()

    def hash_of(self, item: Any) -> str:
        """A hash of all that an item holds."""
        data = item.model_specific_data
        pixels = [item.feature, data.get("patch_pixel_values")]
        tensors = [tensor for tensor in pixels if isinstance(tensor, Tensor)]
        held = [tensor.detach().double().cpu().numpy().tobytes() for tensor in tensors]
        shapes = [tuple(tensor.shape) for tensor in tensors]
        return hashlib.sha256(
            b"".join(held) + repr((shapes, self.counts(data))).encode()
        ).hexdigest()


class FirstItemNormalises(Stepwise):
    """All items of a call are normalised by the first item's brightness."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.shift = mean_of(items[0].feature) if len(items) > 1 else None
        return super().get_image_feature(items)

    def received(self, item: Any) -> Any:
        if self.shift is None:
            return item
        shifted = item.feature + (mean_of(item.feature) - self.shift)
        return type(item)(shifted, item.model_specific_data)


class WholeBatch(Stepwise):
    """All pictures of a tensor are encoded in one batch."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        return list(self.encode(pixels)) if len(pixels) else []


class PaddedBatch(WholeBatch):
    """Batches are filled up to a multiple of eight with empty pictures, but for single ones."""

    def encode(self, pixels: Tensor, *rest: Any) -> Tensor:
        short = -len(pixels) % 8 if len(pixels) > 1 else 0
        empty = pixels.new_zeros(short, *pixels.shape[1:])
        return super().encode(torch.cat([pixels.detach(), empty]), *rest)[: len(pixels)]


_slice = functools.partial(Fault, kind="patch slicing")
_items = functools.partial(Fault, kind="single-item")
_batch = functools.partial(Fault, kind="batch dependence", dtypes=(torch.float32,))

FAULTS = (
    _slice(name="merging: cursor across items", clause="LA-04", encoder=CursorAcrossItems),
    _slice(name="merging: patches of the first item", clause="LA-04", encoder=PatchesOfFirstItem),
    _slice(
        name="merging: patches of all items joined", clause="LA-04", encoder=PatchesOfItemsJoined
    ),
    _items(name="items: reversed", clause="LA-03", encoder=ItemsReversed),
    _items(
        name="items: exactly one",
        clause="LA-03",
        encoder=OneItemOnly,
        source="sglang <= 0.5.13; #24966, #26565",
    ),
    _items(name="items: the first only", clause="LA-03", encoder=FirstItemOnly),
    _items(name="items: the last only", clause="LA-03", encoder=LastItemOnly),
    _items(name="items: sorted by brightness", clause="BA-02", encoder=ItemsSorted),
    _items(name="items: cached in any order", clause="BA-02", encoder=OrderlessCache),
    _items(name="items: normalised by the first", clause="BA-02", encoder=FirstItemNormalises),
    _items(name="items: unknown keys refused", clause="LA-05", encoder=UnknownKeysRefused),
    _items(name="items: all data moved", clause="LA-05", encoder=AllDataMoved),
    _items(name="items: any tensor is patches", clause="LA-05", encoder=AnyTensorIsPatches),
    _batch(name="batches: all pictures at once", clause="BA-05", encoder=WholeBatch),
    _batch(name="batches: filled up", clause="BA-05", encoder=PaddedBatch, source="vLLM #10891"),
)
