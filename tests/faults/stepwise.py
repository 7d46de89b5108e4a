"""The reference's reading of an item with a method for each step, so that a fault can spoil one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference import (
    ImageCountError,
    ImageItem,
    MissingPatchesError,
    PatchRowsError,
    ReferenceEncoder,
    read_counts,
)


class Stepwise(ReferenceEncoder):
    """Right, and does exactly what the reference does."""

    def item_rows(self, item: Any) -> list[Tensor]:
        """The rows of each picture of one item, in the order of the result."""
        item = self.received(item)
        data = item.model_specific_data
        counts = self.counts(data)
        thumbnails = self.pictures("feature", item.feature)
        patches = self.patches(data.get("patch_pixel_values"))
        counts = self.checked(counts, patches, thumbnails)
        return self.merge(counts, patches, thumbnails)

    def received(self, item: Any) -> Any:
        """An item as it arrives."""
        return item

    def counts(self, data: dict[str, Any]) -> Sequence[int]:
        """The counts of one item, not negative."""
        return read_counts(self.written(data.get("num_patches")))

    def written(self, raw: Any) -> Any:
        """The counts in a form that the reference reads (NP-03 to NP-09)."""
        return raw

    def checked(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> Sequence[int]:
        """The counts, which fit the pictures."""
        self.require_patches(counts, patches)
        self.require_images(counts, thumbnails)
        self.require_rows(counts, patches)
        return counts

    def require_patches(self, counts: Sequence[int], patches: list[Tensor]) -> None:
        """Counted patches are there (PP-02)."""
        if sum(counts) > 0 and not patches:
            raise MissingPatchesError

    def require_images(self, counts: Sequence[int], thumbnails: list[Tensor]) -> None:
        """Each thumbnail has a count (MA-04, MA-05)."""
        if len(counts) != len(thumbnails):
            raise ImageCountError(f"{len(counts)} counts for {len(thumbnails)} thumbnails")

    def require_rows(self, counts: Sequence[int], patches: list[Tensor]) -> None:
        """The counts add up to the patch rows (MA-01, MA-02)."""
        if sum(counts) != len(patches):
            raise PatchRowsError(f"{sum(counts)} patches counted, {len(patches)} given")


def with_data(item: Any, **changes: Any) -> ImageItem:
    """The item with other data, and the caller's dict left alone."""
    return ImageItem(item.feature, {**item.model_specific_data, **changes})


def mean_of(pixels: Tensor) -> float:
    """How bright pixels are."""
    return float(pixels.detach().to(torch.float64).mean())
