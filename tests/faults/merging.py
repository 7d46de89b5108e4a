"""Faults in where the rows of pictures stand in the result, and in what it is."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise

Counts = Sequence[int]
Rows = list[Tensor]


class FlatWithoutPatches(Stepwise):
    """Without patches the result is one tensor of pictures, rows and columns."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        bare = not any(sum(self.counts(item.model_specific_data)) for item in items)
        return (
            rows.unflatten(0, (sum(len(i.feature) for i in items), -1)) if bare and items else rows
        )


class LeadingDimension(Stepwise):
    """The result has a leading dimension for the request."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items)[None]


class ResultInDouble(Stepwise):
    """The result comes in float64, whatever the model is."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items).double()


class ResultInSingle(Stepwise):
    """The result comes in float32, whatever the model is."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items).float()


class LastRowMissing(Stepwise):
    """The last row of the result is cut off."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items)[:-1]


class WidthPadded(Stepwise):
    """The columns of the result are filled up to a multiple of eight."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        return torch.nn.functional.pad(rows, (0, -rows.shape[1] % 8))


class _ByImage(Stepwise):
    """Joins the rows of each image by themselves."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        starts = [sum(counts[:index]) for index in range(len(counts))]
        own = [patches[start : start + count] for start, count in zip(starts, counts, strict=True)]
        images = [self.image(*pair) for pair in zip(own, thumbnails, strict=True)]
        return [row for image in self.arranged(images) for row in image]

    def image(self, patches: Rows, thumbnail: Tensor) -> Rows:
        """The rows of one image."""
        return [*patches, thumbnail]

    def arranged(self, images: list[Rows]) -> list[Rows]:
        """The images in the order of the result."""
        return images


class ThumbnailFirst(_ByImage):
    """Each image's thumbnail stands before its patches."""

    def image(self, patches: Rows, thumbnail: Tensor) -> Rows:
        return [thumbnail, *patches]


class PatchesReversed(_ByImage):
    """Each image's patches stand in reverse."""

    def image(self, patches: Rows, thumbnail: Tensor) -> Rows:
        return [*patches[::-1], thumbnail]


class ThumbnailBeforeLastPatch(_ByImage):
    """Each image's thumbnail stands before its last patch."""

    def image(self, patches: Rows, thumbnail: Tensor) -> Rows:
        return [*patches[:-1], thumbnail, *patches[-1:]]


class ImagesReversed(_ByImage):
    """The images of an item stand in reverse."""

    def arranged(self, images: list[Rows]) -> list[Rows]:
        return images[::-1]


class BareImagesLast(_ByImage):
    """Images without patches stand after those with patches."""

    def arranged(self, images: list[Rows]) -> list[Rows]:
        return sorted(images, key=lambda image: len(image) == 1)


class ThumbnailsLast(Stepwise):
    """All patches of an item stand before all its thumbnails."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:  # noqa: ARG002
        return [*patches, *thumbnails]


class ThumbnailsBeforeAll(Stepwise):
    """All thumbnails of an item stand before all its patches."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:  # noqa: ARG002
        return [*thumbnails, *patches]


class _Sliced(Stepwise):
    """Finds each image's patches from a start of its own."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        rows: Rows = []
        for index, (count, thumbnail) in enumerate(zip(counts, thumbnails, strict=True)):
            start = self.start(counts, index)
            rows += [*patches[start : start + count], thumbnail]
        return rows

    def start(self, counts: Counts, index: int) -> int:
        """Where the patches of an image start."""
        raise NotImplementedError


class SlicedByImageIndex(_Sliced):
    """Patches are sliced from the number of the image."""

    def start(self, counts: Counts, index: int) -> int:  # noqa: ARG002
        return index


class SlicedByOwnCount(_Sliced):
    """Patches are sliced as if all images had this image's count."""

    def start(self, counts: Counts, index: int) -> int:
        return index * counts[index]


class SlicedOneEarly(_Sliced):
    """From the second image on, patches are sliced one row early."""

    def start(self, counts: Counts, index: int) -> int:
        return max(sum(counts[:index]) - (index > 0), 0)


class CursorNotAdvanced(_Sliced):
    """Every image gets the first patches."""

    def start(self, counts: Counts, index: int) -> int:  # noqa: ARG002
        return 0


class CursorCountsThumbnails(_Sliced):
    """An image without patches advances the cursor by one."""

    def start(self, counts: Counts, index: int) -> int:
        return sum(max(count, 1) for count in counts[:index])


class ZeroCountsSkipped(Stepwise):
    """Counts that are not zero go to the first images."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        return super().merge(sorted(counts, key=lambda count: not count), patches, thumbnails)


class ZeroCountEndsIt(Stepwise):
    """After an image without patches, the rest of the patches goes to the last image."""

    def merge(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Rows:
        known = list(counts).index(0) if 0 in counts else len(counts)
        if known == len(counts):
            return super().merge(counts, patches, thumbnails)
        rest = [0] * (len(counts) - known - 1) + [sum(counts[known:])]
        return super().merge([*counts[:known], *rest], patches, thumbnails)


_shape = functools.partial(Fault, kind="constant or zero output")
_order = functools.partial(Fault, kind="thumbnail first")
_slice = functools.partial(Fault, kind="patch slicing")

FAULTS = (
    _shape(name="result: pictures, rows, columns", clause="LA-01", encoder=FlatWithoutPatches),
    _shape(name="result: a leading dimension", clause="LA-01", encoder=LeadingDimension),
    _shape(
        name="result: always float64",
        clause="LA-01",
        encoder=ResultInDouble,
        dtypes=(torch.float32, torch.bfloat16, torch.float16),
    ),
    _shape(
        name="result: always float32",
        clause="LA-01",
        encoder=ResultInSingle,
        dtypes=(torch.bfloat16, torch.float16, torch.float64),
    ),
    _shape(name="result: a row short", clause="LA-01", encoder=LastRowMissing),
    _shape(name="result: columns filled up", clause="LA-01", encoder=WidthPadded),
    _order(name="merging: thumbnail first", clause="LA-02", encoder=ThumbnailFirst),
    _order(name="merging: patches reversed", clause="LA-02", encoder=PatchesReversed),
    _order(
        name="merging: thumbnail before the last patch",
        clause="LA-02",
        encoder=ThumbnailBeforeLastPatch,
    ),
    _order(name="merging: all thumbnails first", clause="LA-02", encoder=ThumbnailsBeforeAll),
    _order(name="merging: all thumbnails last", clause="LA-03", encoder=ThumbnailsLast),
    _order(name="merging: images reversed", clause="LA-03", encoder=ImagesReversed),
    _order(name="merging: images without patches last", clause="LA-06", encoder=BareImagesLast),
    _slice(
        name="merging: sliced by image index",
        clause="LA-03",
        encoder=SlicedByImageIndex,
        source="sglang #24970",
    ),
    _slice(name="merging: sliced by own count", clause="LA-03", encoder=SlicedByOwnCount),
    _slice(name="merging: sliced one early", clause="LA-03", encoder=SlicedOneEarly),
    _slice(name="merging: cursor not advanced", clause="LA-03", encoder=CursorNotAdvanced),
    _slice(
        name="merging: cursor counts thumbnails", clause="LA-06", encoder=CursorCountsThumbnails
    ),
    _slice(name="merging: zero counts skipped", clause="LA-06", encoder=ZeroCountsSkipped),
    _slice(name="merging: a zero count ends it", clause="LA-06", encoder=ZeroCountEndsIt),
)
