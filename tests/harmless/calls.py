"""Harmless ways to run whole calls: batches, dtypes inside, how the result is put together."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from reference import EncoderConfig, ImageItem, ReferenceEncoder
from reference.tower import Probe, no_probe
from tests.second import SecondEncoder


class SecondArithmetic(ReferenceEncoder):
    """Items read by the reference, pictures encoded by the second implementation."""

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(config, weights, device=device, dtype=dtype)
        self.second = SecondEncoder(config, weights, device=device, dtype=dtype)

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:  # noqa: ARG002
        return self.second.encode(pixels)


class OneImageAtATime(ReferenceEncoder):
    """Every image as a call of its own, with all its patches in one batch."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        self.require_pixels(name, pixels)
        return list(self.encode(pixels)) if len(pixels) else []

    def item_rows(self, item: Any) -> list[Tensor]:
        super().item_rows(item)  # refuses what is malformed
        counts = torch.as_tensor(item.model_specific_data["num_patches"]).reshape(-1).tolist()
        patches, start, rows = item.model_specific_data.get("patch_pixel_values"), 0, []
        for thumbnail, count in zip(item.feature.split(1), counts, strict=True):
            own = patches[start : start + count] if count else None
            data = {"num_patches": count, "patch_pixel_values": own}
            rows += super().item_rows(ImageItem(thumbnail, data))
            start += count
        return rows


class WholeBatch(ReferenceEncoder):
    """All thumbnails of an item in one batch, and all its patches in another."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        self.require_pixels(name, pixels)
        return list(self.batch(pixels)) if len(pixels) else []

    def batch(self, pixels: Tensor) -> Tensor:
        """The rows of at least one picture."""
        return self.encode(pixels)


class ChunksOfTwo(WholeBatch):
    """Batches of two."""

    def batch(self, pixels: Tensor) -> Tensor:
        return torch.cat([self.encode(chunk) for chunk in pixels.split(2)])


class SortedBatch(WholeBatch):
    """Batches sorted by brightness, and put back in order afterwards."""

    def batch(self, pixels: Tensor) -> Tensor:
        order = pixels.detach().float().mean(dim=(1, 2, 3)).argsort()
        return self.encode(pixels[order])[order.argsort()]


class PaddedBatch(WholeBatch):
    """Batches filled up to a multiple of four with empty pictures."""

    def batch(self, pixels: Tensor) -> Tensor:
        empty = pixels.new_zeros(-len(pixels) % 4, *pixels.shape[1:])
        return self.encode(torch.cat([pixels.detach(), empty]))[: len(pixels)]


class OneBatchForAll(ReferenceEncoder):
    """All pictures of one size in the call, whatever items they belong to, in one batch."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.waiting: list[Tensor] = []
        order = super().get_image_feature(items)[:, 0].long().tolist()
        sizes = {picture.shape for picture in self.waiting}
        found: dict[int, Tensor] = {}
        for size in sizes:
            places = [i for i, picture in enumerate(self.waiting) if picture.shape == size]
            batch = self.encode(torch.stack([self.waiting[place] for place in places]))
            found |= dict(zip(places, batch, strict=True))
        empty = torch.zeros(0, self.config.text_width, dtype=self.dtype, device=self.device)
        return torch.cat([empty, *(found[place] for place in order)])

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        """Instead of its rows, the number of each picture."""
        self.require_pixels(name, pixels)
        numbers = range(len(self.waiting), len(self.waiting) + len(pixels))
        self.waiting += pixels.detach().to(self.device, self.dtype)
        return [torch.full((1, self.config.text_width), n, device=self.device) for n in numbers]


class OtherDtypeInside(ReferenceEncoder):
    """Computes in another dtype than that of its weights and its result."""

    inside = torch.float64

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        rounded = {name: tensor.to(dtype) for name, tensor in weights.items()}
        super().__init__(config, rounded, device=device, dtype=self.inside)
        self.outside = dtype

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        with self.surroundings():
            return super().encode(pixels.to(self.outside), probe)

    def surroundings(self) -> contextlib.AbstractContextManager[Any]:
        """What the towers run under."""
        return contextlib.nullcontext()

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items).to(self.outside)


class SingleInside(OtherDtypeInside):
    """Computes in float32, whatever the dtype."""

    inside = torch.float32


class Autocast(SingleInside):
    """Weights in float32, matrix products in the dtype by torch.autocast."""

    def surroundings(self) -> contextlib.AbstractContextManager[Any]:
        return torch.autocast("cpu", dtype=self.outside)


class InferenceMode(ReferenceEncoder):
    """Everything in inference mode, so the result is an inference tensor."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        with torch.inference_mode():
            return super().get_image_feature(items)


class StridedResult(ReferenceEncoder):
    """A result that is a transposed window of a larger tensor."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        larger = rows.new_full((rows.shape[1] + 2, rows.shape[0] + 1), 7.0)
        larger[1:-1, 1:] = rows.T
        return larger[1:-1, 1:].T


class JoinedLists(ReferenceEncoder):
    """A list for each item, joined picture by picture and then item by item."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        parts = [super(JoinedLists, self).get_image_feature([item]) for item in items]
        return torch.cat(parts) if parts else super().get_image_feature([])


class CopiedIntoPlace(ReferenceEncoder):
    """Rows copied by index into a new buffer of the right size, thumbnails first."""

    def merge(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> list[Tensor]:
        sizes = super().merge(
            counts,
            [torch.full((len(rows),), True) for rows in patches],
            [torch.full((len(rows),), False) for rows in thumbnails],
        )
        if not sizes:
            return []
        is_patch = torch.cat(sizes).to(self.device)
        buffer = torch.empty(
            len(is_patch), self.config.text_width, dtype=self.dtype, device=self.device
        )
        for rows, where in ((thumbnails, ~is_patch), (patches, is_patch)):
            if rows:
                buffer.index_copy_(0, where.nonzero().flatten(), torch.cat(rows))
        return [buffer]
