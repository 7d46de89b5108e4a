"""Faults of encoders that remember: what an earlier call leaves for a later one."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from reference.tower import Probe, no_probe
from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise


def content(pixels: Any) -> Hashable:
    """The values of pixels, without shape or dtype; None for anything else."""
    if not isinstance(pixels, Tensor):
        return None
    return pixels.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def shape(pixels: Any) -> Hashable:
    """The shape and dtype of pixels; None for anything else."""
    return (tuple(pixels.shape), pixels.dtype) if isinstance(pixels, Tensor) else None


class _Remembering(Stepwise):
    """Answers an item that it has seen before from memory, once the item is found well-formed."""

    def checked(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> Sequence[int]:
        self.found = super().checked(counts, patches, thumbnails)
        return self.found

    def item_rows(self, item: Any) -> list[Tensor]:
        self.answers: dict[Hashable, list[Tensor]] = getattr(self, "answers", {})
        rows = super().item_rows(item)
        patches = item.model_specific_data.get("patch_pixel_values")
        return self.answers.setdefault(self.key(item.feature, patches, tuple(self.found)), rows)

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:
        """What must agree for an earlier answer to do."""
        raise NotImplementedError


class FeatureAlone(_Remembering):
    """An answer is found by the thumbnails alone."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:  # noqa: ARG002
        return content(feature), shape(feature)


class FeatureAndCounts(_Remembering):
    """An answer is found by the thumbnails and the counts."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:  # noqa: ARG002
        return content(feature), shape(feature), counts


class WithoutShape(_Remembering):
    """An answer is found by the bytes, whatever their shape."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:
        return content(feature), content(patches), sum(counts)


class WithoutCounts(_Remembering):
    """An answer is found by all pixels, without the counts."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:  # noqa: ARG002
        return content(feature), shape(feature), content(patches), shape(patches)


class PatchesAlone(_Remembering):
    """An answer is found by the patches and the counts, if there are any patches."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:
        if sum(counts):
            return counts, shape(feature), content(patches), shape(patches)
        return content(feature), shape(feature)


class FirstPictureAlone(_Remembering):
    """An answer is found by the first thumbnail and patch, to hash less."""

    def key(self, feature: Tensor, patches: Any, counts: tuple[int, ...]) -> Hashable:
        first = content(patches[:1]) if sum(counts) else None
        return content(feature[:1]), shape(feature), first, shape(patches), counts


class Replayed(Stepwise):
    """For a size that was seen before, the first picture of that size is encoded again."""

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        self.captured: dict[torch.Size, Tensor] = getattr(self, "captured", {})
        return super().encode(self.captured.setdefault(pixels.shape, pixels.clone()), probe)


_cache = functools.partial(Fault, kind="cache key too short", clause="SE-08")

FAULTS = (
    _cache(name="cache: by the feature", encoder=FeatureAlone, source="sglang #32404"),
    _cache(name="cache: by feature and counts", encoder=FeatureAndCounts, source="LMCache #690"),
    _cache(name="cache: without shapes", encoder=WithoutShape, source="sglang #25462"),
    _cache(name="cache: without counts", encoder=WithoutCounts),
    _cache(name="cache: by the patches", encoder=PatchesAlone),
    _cache(name="cache: by the first picture", encoder=FirstPictureAlone),
    _cache(name="cache: graph replayed with old input", encoder=Replayed),
)
