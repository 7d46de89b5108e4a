"""Faults in what a call does beside its result, and in what input it takes for granted."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference.tower import Probe, no_probe
from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise

Counts = Sequence[int]
Rows = list[Tensor]
COUNTS, PATCHES = "num_patches", "patch_pixel_values"


class NormalisedInPlace(Stepwise):
    """Pixels are scaled where they lie, and the factor taken back inside."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        return super().pictures(name, pixels.mul_(2) / 2)


class MemoryReused(Stepwise):
    """The memory of the pixels serves as scratch once they are encoded."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        rows = super().pictures(name, pixels)
        pixels.data.zero_()
        return rows


class CountsPopped(Stepwise):
    """The counts are taken out of the caller's dict."""

    def counts(self, data: dict[str, Any]) -> Counts:
        return super().counts({COUNTS: data.pop(COUNTS, None)})


class PatchesPopped(Stepwise):
    """The patches are taken out of the caller's dict to free them early."""

    def item_rows(self, item: Any) -> Rows:
        rows = super().item_rows(item)
        item.model_specific_data.pop(PATCHES, None)
        return rows


class PatchesPutBack(Stepwise):
    """The patches are taken out of the caller's dict, and put back unless the call fails."""

    def item_rows(self, item: Any) -> Rows:
        data = item.model_specific_data
        patches = data.pop(PATCHES, None)
        counts = self.counts(data)
        rows = super().item_rows(type(item)(item.feature, {COUNTS: counts, PATCHES: patches}))
        if patches is not None:
            data[PATCHES] = patches
        return rows


class KeyAdded(Stepwise):
    """The number of rows is left in the caller's dict."""

    def item_rows(self, item: Any) -> Rows:
        rows = super().item_rows(item)
        item.model_specific_data["num_image_tokens"] = sum(len(row) for row in rows)
        return rows


class CountsTensorised(Stepwise):
    """The counts in the caller's dict become a tensor."""

    def counts(self, data: dict[str, Any]) -> Counts:
        counts = super().counts(data)
        data[COUNTS] = torch.tensor(counts)
        return counts


class CountsConsumed(Stepwise):
    """A list of counts is emptied from the front."""

    def counts(self, data: dict[str, Any]) -> Counts:
        counts = super().counts(data)
        if isinstance(data[COUNTS], list):
            data[COUNTS].clear()
        return counts


class PatchesCastInDict(Stepwise):
    """The patches in the caller's dict are replaced by cast ones."""

    def received(self, item: Any) -> Any:
        data = item.model_specific_data
        if isinstance(data.get(PATCHES), Tensor) and data[PATCHES].is_floating_point():
            data[PATCHES] = data[PATCHES].to(self.dtype)
        return item


class SumsInAnyOrder(Stepwise):
    """The last bit of the result is left to chance, as sums by atomic addition leave it."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        self.chance = getattr(self, "chance", torch.Generator().manual_seed(1))
        up = torch.rand(rows.shape, generator=self.chance).to(rows.device) > 0.5
        return torch.where(up, rows.nextafter(torch.full_like(rows, torch.inf)), rows)


class FirstCallTuned(Stepwise):
    """The first call for a size takes another kernel than the later ones."""

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        self.tuned: set[torch.Size] = getattr(self, "tuned", set())
        again = pixels.shape in self.tuned
        self.tuned.add(pixels.shape)
        return super().encode(pixels if again else pixels.repeat(5, 1, 1, 1), probe)[:1]


class OutputBuffer(Stepwise):
    """Results of one shape share one buffer, as replayed graphs do."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        self.buffers: dict[torch.Size, Tensor] = getattr(self, "buffers", {})
        return self.buffers.setdefault(rows.shape, torch.empty_like(rows)).copy_(rows)


class GrowingBuffer(Stepwise):
    """Results are the front of one buffer, which grows when it must."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        buffer = getattr(self, "buffer", rows)
        self.buffer = buffer if len(buffer) >= len(rows) else torch.empty_like(rows)
        return self.buffer[: len(rows)].copy_(rows)


class PendingRows(Stepwise):
    """Rows wait in a list that a failed call does not empty."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.pending: Rows = getattr(self, "pending", [])
        empty = super().get_image_feature(items)[:0]
        rows, self.pending = self.pending, []
        return torch.cat([empty, *rows])

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        place = len(self.pending)
        self.pending += thumbnails
        counts = super().checked(counts, patches, thumbnails)
        self.pending[place:] = self.merge(counts, patches, thumbnails)
        return counts


class StaleCursor(Stepwise):
    """The place in the patches goes back to the start only if a call succeeds."""

    cursor = 0

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        start, self.cursor = self.cursor, self.cursor + sum(counts)
        counts = super().checked(counts, patches, thumbnails)
        del patches[:start]
        self.cursor = 0
        return counts


class NeverReleased(Stepwise):
    """A call that fails leaves the encoder marked as busy."""

    busy = False

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        if self.busy:
            raise RuntimeError("the encoder is busy")
        self.busy = True
        rows = super().get_image_feature(items)
        self.busy = False
        return rows


class CountsOfFailedCall(Stepwise):
    """Counts of a call that fails are used up by the next."""

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        self.left: list[Counts] = [*getattr(self, "left", []), counts]
        counts = super().checked(self.left[0], patches, thumbnails)
        self.left = []
        return counts


class ViewNotReshape(Stepwise):
    """Pixels are viewed in another shape, which strides may not allow."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        return super().pictures(name, pixels.view(-1).view(pixels.shape))


class MustBeContiguous(Stepwise):
    """The last stride must be 1, as kernels ask."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        assert not isinstance(pixels, Tensor) or pixels.stride(-1) == 1, (
            "Expected a.stride(-1) == 1"
        )
        return super().pictures(name, pixels)


class StridesIgnored(Stepwise):
    """Pixels are read from memory as if they were contiguous."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        strides = torch.empty(pixels.shape, device="meta").stride()
        return super().pictures(name, pixels.detach().as_strided(pixels.shape, strides))


class OffsetIgnored(Stepwise):
    """Pixels are read from the start of their storage."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        return super().pictures(name, pixels.detach().as_strided(pixels.shape, pixels.stride(), 0))


class ChannelsLastByStride(Stepwise):
    """Pixels whose channels lie closest are taken for pictures with channels last."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        if isinstance(pixels, Tensor) and pixels.dim() == 4 and pixels.stride(1) == 1:
            pixels = pixels.transpose(2, 3)
        return super().pictures(name, pixels)


class ThroughDLPack(Stepwise):
    """Pixels go to another library through DLPack, which tensors that require grad do not."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        self.require_pixels(name, pixels)
        return super().pictures(name, torch.from_dlpack(pixels))


class GradRefused(Stepwise):
    """Pixels that require grad are refused."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        if isinstance(pixels, Tensor) and pixels.requires_grad:
            raise ValueError("the encoder is frozen; detach its input")
        return super().pictures(name, pixels)


class RunsWithGrad(Stepwise):
    """The tower runs with gradients on, and would keep what inference mode forbids to keep."""

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        with torch.enable_grad():
            (pixels * torch.ones((), requires_grad=True)).detach()
        return super().encode(pixels, probe)


class VersionRead(Stepwise):
    """A cache asks for the version of the pixels, which inference tensors do not count."""

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        self.version = pixels._version
        return super().encode(pixels, probe)


_mutation = functools.partial(Fault, kind="mutation of input")
_alias = functools.partial(Fault, kind="aliasing")
_stale = functools.partial(Fault, kind="stale cursor after error")
_strides = functools.partial(Fault, kind="strides")
_chance = functools.partial(Fault, kind="accumulation", dtypes=(torch.float32,))

FAULTS = (
    _mutation(name="caller: normalised in place", clause="SE-01", encoder=NormalisedInPlace),
    _mutation(name="caller: memory reused", clause="SE-01", encoder=MemoryReused),
    _mutation(name="caller: counts popped", clause="SE-01", encoder=CountsPopped),
    _mutation(name="caller: patches popped", clause="SE-01", encoder=PatchesPopped),
    _mutation(name="caller: patches not put back", clause="SE-01", encoder=PatchesPutBack),
    _mutation(name="caller: a key added", clause="SE-01", encoder=KeyAdded),
    _mutation(name="caller: counts made a tensor", clause="SE-01", encoder=CountsTensorised),
    _mutation(name="caller: counts used up", clause="SE-01", encoder=CountsConsumed),
    _mutation(name="caller: patches cast in the dict", clause="SE-01", encoder=PatchesCastInDict),
    _chance(name="calls: sums in any order", clause="SE-02", encoder=SumsInAnyOrder),
    _chance(name="calls: the first is tuned", clause="SE-02", encoder=FirstCallTuned),
    _alias(
        name="calls: one buffer for a shape",
        clause="SE-03",
        encoder=OutputBuffer,
        source="vLLM #52115",
    ),
    _alias(name="calls: one growing buffer", clause="SE-03", encoder=GrowingBuffer),
    _stale(name="errors: rows left waiting", clause="SE-04", encoder=PendingRows),
    _stale(name="errors: a stale cursor", clause="SE-04", encoder=StaleCursor),
    _stale(name="errors: busy for ever", clause="SE-04", encoder=NeverReleased),
    _stale(name="errors: counts left over", clause="SE-04", encoder=CountsOfFailedCall),
    _strides(name="strides: viewed", clause="SE-06", encoder=ViewNotReshape, source="vLLM #8630"),
    _strides(
        name="strides: must be contiguous",
        clause="SE-06",
        encoder=MustBeContiguous,
        source="vLLM CPU kernels",
    ),
    _strides(name="strides: passed over", clause="SE-06", encoder=StridesIgnored),
    _strides(name="strides: offset passed over", clause="SE-06", encoder=OffsetIgnored),
    _strides(name="strides: layout guessed", clause="SE-06", encoder=ChannelsLastByStride),
    _strides(name="autograd: through DLPack", clause="SE-07", encoder=ThroughDLPack),
    _strides(name="autograd: input that requires grad", clause="SE-07", encoder=GradRefused),
    _strides(name="autograd: runs with gradients on", clause="SE-07", encoder=RunsWithGrad),
    _strides(name="autograd: version read", clause="SE-07", encoder=VersionRead),
)
