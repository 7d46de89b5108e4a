"""Faults in what an encoder lets pass: metadata and pixels that should be refused."""

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


class SlicedPastTheEnd(Stepwise):
    """The last images get as many patches as there are."""

    def require_rows(self, counts: Counts, patches: Rows) -> None:
        super().require_rows([min(sum(counts), len(patches))], patches)


class LastPatchRepeated(Stepwise):
    """Indices past the end stop at the last patch."""

    def require_rows(self, counts: Counts, patches: Rows) -> None:
        patches += patches[-1:] * (sum(counts) - len(patches))
        super().require_rows(counts, patches)


class MissingPatchesAreZero(Stepwise):
    """Rows of zeros stand for patches that are not there."""

    def require_rows(self, counts: Counts, patches: Rows) -> None:
        patches += [torch.zeros_like(row) for row in patches[:1]] * (sum(counts) - len(patches))
        super().require_rows(counts, patches)


class RestDropped(Stepwise):
    """Patches that no image counts are dropped."""

    def require_rows(self, counts: Counts, patches: Rows) -> None:
        super().require_rows(counts, patches[: sum(counts)])


class RestToTheLast(Stepwise):
    """The last image gets all patches that are left."""

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        left = len(patches) - sum(counts)
        counts = [*counts[:-1], counts[-1] + left] if patches and left > 0 else counts
        return super().checked(counts, patches, thumbnails)


class NegativeSliced(Stepwise):
    """A negative count is a slice that is empty and moves the cursor back."""

    def counts(self, data: dict[str, Any]) -> Counts:
        raw = data.get("num_patches")
        simple = isinstance(raw, list) and all(type(entry) is int for entry in raw)
        return raw if simple else super().counts(data)


class NegativeIsZero(Stepwise):
    """A negative count is no patches, and the images before it get what there is."""

    def written(self, raw: Any) -> Any:
        if not isinstance(raw, list) or not any(isinstance(n, int) and n < 0 for n in raw):
            return raw
        kept = [max(count, 0) for count in raw]
        return [kept[0] - sum(kept) + sum(raw), *kept[1:]]


class ImagesDropped(Stepwise):
    """Images and counts are zipped, and images without a count dropped."""

    def require_images(self, counts: Counts, thumbnails: Rows) -> None:
        del thumbnails[max(len(counts), 1) :]
        super().require_images(counts, thumbnails)


class MissingCountsAreZero(Stepwise):
    """Images without a count have no patches."""

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        more = [0] * (len(thumbnails) - len(counts))
        return super().checked([*counts, *more], patches, thumbnails)


class LastCountRepeated(Stepwise):
    """One count too few is made up for by the last."""

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        more = list(counts[-1:]) * (len(thumbnails) - len(counts))
        return super().checked([*counts, *more], patches, thumbnails)


class CountsDropped(Stepwise):
    """Counts beyond the images are passed over."""

    def checked(self, counts: Counts, patches: Rows, thumbnails: Rows) -> Counts:
        return super().checked(counts[: len(thumbnails)], patches, thumbnails)


class LastThumbnailRepeated(Stepwise):
    """Counts beyond the images get the last thumbnail again."""

    def require_images(self, counts: Counts, thumbnails: Rows) -> None:
        thumbnails += thumbnails[-1:] * (len(counts) - len(thumbnails))
        super().require_images(counts, thumbnails)


class _Mended(Stepwise):
    """Mends pixels before they are looked at."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        return super().pictures(name, self.mended(pixels) if isinstance(pixels, Tensor) else pixels)

    def mended(self, pixels: Tensor) -> Tensor:
        """Pixels of another form, as pixels that the encoder takes."""
        raise NotImplementedError


class GreyPictures(_Mended):
    """Pixels of rank 3 are grey pictures."""

    def mended(self, pixels: Tensor) -> Tensor:
        return pixels[:, None].expand(-1, 3, -1, -1) if pixels.dim() == 3 else pixels


class OneLeadingDimension(_Mended):
    """Pixels of rank 5 have a leading dimension for the request."""

    def mended(self, pixels: Tensor) -> Tensor:
        return pixels.flatten(0, 1) if pixels.dim() == 5 else pixels


class OneChannelRepeated(_Mended):
    """A single channel stands for all three."""

    def mended(self, pixels: Tensor) -> Tensor:
        single = pixels.dim() == 4 and pixels.shape[1] == 1
        return pixels.expand(-1, 3, -1, -1) if single else pixels


class FourthChannelCut(_Mended):
    """Channels beyond the third are cut off, as transparency is."""

    def mended(self, pixels: Tensor) -> Tensor:
        return pixels[:, :3] if pixels.dim() == 4 else pixels


class LayoutGuessed(_Mended):
    """Pixels whose last side is three have their channels last."""

    def mended(self, pixels: Tensor) -> Tensor:
        last = pixels.dim() == 4 and pixels.shape[3] == 3 != pixels.shape[1]
        return pixels.permute(0, 3, 1, 2) if last else pixels


class RowsBroadcast(_Mended):
    """Patches of rank 3 or of one channel are broadcast."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        return (
            super().pictures(name, pixels)
            if name != "feature"
            else Stepwise.pictures(self, name, pixels)
        )

    def mended(self, pixels: Tensor) -> Tensor:
        return (
            pixels[:, :1].expand(-1, 3, -1, -1)
            if pixels.dim() == 4 and pixels.shape[1] < 3
            else pixels
        )


class IntegersCast(_Mended):
    """Integer pixels are cast to the model's dtype as they are."""

    def mended(self, pixels: Tensor) -> Tensor:
        return pixels.to(torch.promote_types(pixels.dtype, torch.bfloat16))


class IntegersScaled(_Mended):
    """Bytes are scaled to run from -1 to 1, which is not how pictures are normalised."""

    def mended(self, pixels: Tensor) -> Tensor:
        return pixels / 127.5 - 1 if pixels.dtype == torch.uint8 else pixels


class IntegerPatchesCast(IntegersCast):
    """Integer patches are cast to the model's dtype as they are."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        return (Stepwise if name == "feature" else IntegersCast).pictures(self, name, pixels)


class IntegerFeatureCast(IntegersCast):
    """An integer feature is cast to the model's dtype as it is."""

    def pictures(self, name: str, pixels: Any) -> Rows:
        return (IntegersCast if name == "feature" else Stepwise).pictures(self, name, pixels)


class EmptyIsJoined(Stepwise):
    """The rows of no items are joined, which has an error of its own."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items) if items else torch.cat([])


class EmptyIsIndexed(Stepwise):
    """The first item is looked at, whether or not there is one."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        assert items[0] is not None
        return super().get_image_feature(items)


class EmptyIsFlat(Stepwise):
    """No items give a tensor without columns."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        rows = super().get_image_feature(items)
        return rows if items else rows.flatten()


class EmptyIsNone(Stepwise):
    """No items give None."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        return super().get_image_feature(items) if items else None  # type: ignore[return-value]


_cut = functools.partial(Fault, kind="silent truncation")
_channels = functools.partial(Fault, kind="channel order", clause="MA-08")
_integers = functools.partial(Fault, kind="dtype of input", clause="MA-09")
_empty = functools.partial(Fault, kind="missing counts", clause="MA-10")

FAULTS = (
    _cut(
        name="metadata: sliced past the end",
        clause="MA-01",
        encoder=SlicedPastTheEnd,
        source="every release",
    ),
    _cut(name="metadata: last patch repeated", clause="MA-01", encoder=LastPatchRepeated),
    _cut(name="metadata: zeros for patches", clause="MA-01", encoder=MissingPatchesAreZero),
    _cut(
        name="metadata: rest of patches dropped",
        clause="MA-02",
        encoder=RestDropped,
        source="every release",
    ),
    _cut(name="metadata: rest to the last image", clause="MA-02", encoder=RestToTheLast),
    _cut(
        name="metadata: negative count sliced",
        clause="MA-03",
        encoder=NegativeSliced,
        source="every release",
    ),
    _cut(name="metadata: negative count is zero", clause="MA-03", encoder=NegativeIsZero),
    _cut(
        name="metadata: images dropped",
        clause="MA-04",
        encoder=ImagesDropped,
        source="sglang, transformers 5.24",
    ),
    _cut(name="metadata: zero for missing counts", clause="MA-04", encoder=MissingCountsAreZero),
    _cut(name="metadata: last count repeated", clause="MA-04", encoder=LastCountRepeated),
    _cut(name="metadata: counts dropped", clause="MA-05", encoder=CountsDropped),
    _cut(name="metadata: last thumbnail repeated", clause="MA-05", encoder=LastThumbnailRepeated),
    _channels(name="pixels: rank 3 is grey", encoder=GreyPictures),
    _channels(name="pixels: rank 5 is flattened", encoder=OneLeadingDimension, source="vLLM 0.11"),
    _channels(name="pixels: one channel repeated", encoder=OneChannelRepeated),
    _channels(name="pixels: fourth channel cut", encoder=FourthChannelCut),
    _channels(name="pixels: layout guessed", encoder=LayoutGuessed, source="mlx-vlm 0.7.10"),
    _channels(name="pixels: patches broadcast", encoder=RowsBroadcast),
    _integers(name="pixels: integers cast", encoder=IntegersCast, source="sglang, vLLM"),
    _integers(name="pixels: integers scaled", encoder=IntegersScaled),
    _integers(name="pixels: integer patches cast", encoder=IntegerPatchesCast),
    _integers(name="pixels: integer feature cast", encoder=IntegerFeatureCast),
    _empty(name="no items: joined", encoder=EmptyIsJoined, source="sglang >= 0.5.14"),
    _empty(name="no items: indexed", encoder=EmptyIsIndexed),
    _empty(name="no items: no columns", encoder=EmptyIsFlat),
    _empty(name="no items: None", encoder=EmptyIsNone),
)
