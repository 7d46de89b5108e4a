"""Faults in how patch pixels and features are received: present or not, in any float dtype."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from reference import MISSING_PATCHES
from tests.faults.fault import PRECISE, Fault
from tests.faults.stepwise import Stepwise, with_data

PATCHES = "patch_pixel_values"


def is_empty(raw: Any) -> bool:
    """Whether patch pixels are a tensor of zero rows."""
    return isinstance(raw, Tensor) and raw.dim() > 0 and len(raw) == 0


class ZeroRowsReshaped(Stepwise):
    """The rows of no patches are reshaped, with a size left open."""

    def patches(self, raw: Any) -> list[Tensor]:
        if is_empty(raw):
            raw.new_empty(0, 0, self.config.text_width).reshape(0, -1, self.config.text_width)
        return super().patches(raw)


class ZeroRowsPadded(Stepwise):
    """A batch of patches has at least one row, which is not taken away again."""

    def merge(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> list[Tensor]:
        rows = super().merge(counts, patches, thumbnails)
        return [*self.padding, *rows]

    def patches(self, raw: Any) -> list[Tensor]:
        self.padding = super().patches(torch.zeros(1, *raw.shape[1:])) if is_empty(raw) else []
        return super().patches(raw)


class NoneIsMoved(Stepwise):
    """Patches are moved to the device if there is a key for them."""

    def received(self, item: Any) -> Any:
        data = item.model_specific_data
        return with_data(
            item, **{PATCHES: data[PATCHES].to(self.device)} if PATCHES in data else {}
        )


class MissingIsThumbnailsOnly(Stepwise):
    """Counted patches that are not there are passed over."""

    def checked(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> Sequence[int]:
        counts = counts if patches else [0] * len(counts)
        return super().checked(counts, patches, thumbnails)


class MissingIsTypeError(Stepwise):
    """The rows of counted patches are taken, whether or not they are there."""

    def require_patches(self, counts: Sequence[int], patches: list[Tensor]) -> None:
        if sum(counts) > 0 and not patches:
            raise TypeError("object of type 'NoneType' has no len()")


class MissingIsAssertion(Stepwise):
    """Counted patches that are not there fail an assertion."""

    def require_patches(self, counts: Sequence[int], patches: list[Tensor]) -> None:
        assert not sum(counts) or patches, "unreachable"


class MissingIsRuntimeError(Stepwise):
    """The documented message, but of another class."""

    def require_patches(self, counts: Sequence[int], patches: list[Tensor]) -> None:
        if sum(counts) > 0 and not patches:
            raise RuntimeError(MISSING_PATCHES)


class ZeroRowsAreEnough(Stepwise):
    """Only absent patches are missing: zero rows are sliced, and give nothing."""

    def received(self, item: Any) -> Any:
        counts, patches = (item.model_specific_data.get(key) for key in ("num_patches", PATCHES))
        return with_data(item, num_patches=[0] * len(counts)) if is_empty(patches) else item


class EmptyListIsMoved(Stepwise):
    """Patches that are not None are moved to the device, an empty list too."""

    def patches(self, raw: Any) -> list[Tensor]:
        return super().patches(None if raw is None else raw.to(self.device))


class EmptyListIsStacked(Stepwise):
    """A list of patches is stacked."""

    def patches(self, raw: Any) -> list[Tensor]:
        return super().patches(torch.stack(raw) if isinstance(raw, list) else raw)


class _Chosen(Stepwise):
    """Prepares one of the two tensors of pixels in another way than it should."""

    chosen = ""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        self.require_pixels(name, pixels)
        return super().pictures(name, self.prepared(pixels) if name == self.chosen else pixels)

    def prepared(self, pixels: Tensor) -> Tensor:
        """Pixels on their way to the tower."""
        raise NotImplementedError


class Uncast(_Chosen):
    """Pixels go to the tower in their own dtype."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        if name != self.chosen:
            return super().pictures(name, pixels)
        self.require_pixels(name, pixels)
        tower = self.towers[self.config.family](self.config, self.weights)
        return [tower(picture.detach().clone())[0] for picture in pixels.split(1)]


class ThroughNumPy(_Chosen):
    """Pixels go through NumPy, which has no bfloat16."""

    def prepared(self, pixels: Tensor) -> Tensor:
        return torch.from_numpy(pixels.detach().cpu().numpy().copy())


class LowPrecisionIsBytes(_Chosen):
    """Pixels of another dtype than the model's are taken for bytes, and scaled."""

    def prepared(self, pixels: Tensor) -> Tensor:
        return pixels if pixels.dtype == self.dtype else pixels / 127.5 - 1


class ThroughBfloat16(_Chosen):
    """Pixels are cast to bfloat16 first, as a published model has it."""

    def prepared(self, pixels: Tensor) -> Tensor:
        return pixels.to(torch.bfloat16)


class DoubleRefused(_Chosen):
    """Pixels of less precision are cast, float64 is not."""

    def prepared(self, pixels: Tensor) -> Tensor:
        if pixels.dtype == torch.float64 != self.dtype:
            raise RuntimeError("Input type (double) and bias type (float) should be the same")
        return pixels


class ResultInPixelsDtype(_Chosen):
    """The rows come back in the dtype of the pixels."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        rows = Stepwise.pictures(self, name, pixels)
        return [row.to(pixels.dtype) for row in rows] if name == self.chosen else rows


def patches_only(mixin: type[_Chosen]) -> type[_Chosen]:
    """The fault in the patches alone."""
    return type(f"{mixin.__name__}Patches", (mixin,), {"chosen": PATCHES})


def feature_only(mixin: type[_Chosen]) -> type[_Chosen]:
    """The fault in the feature alone."""
    return type(f"{mixin.__name__}Feature", (mixin,), {"chosen": "feature"})


_empty = functools.partial(Fault, kind="empty patches")
_dtype = functools.partial(Fault, kind="dtype of input")

FAULTS = (
    _empty(
        name="patches: zero rows are reshaped",
        clause="PP-01",
        encoder=ZeroRowsReshaped,
        source="vLLM 0.12, transformers 5.24, sglang 3.7",
    ),
    _empty(name="patches: zero rows become one", clause="PP-01", encoder=ZeroRowsPadded),
    _empty(name="patches: None is moved", clause="PP-01", encoder=NoneIsMoved),
    _empty(
        name="patches: missing is thumbnails only",
        clause="PP-02",
        encoder=MissingIsThumbnailsOnly,
        source="mlx-vlm 0.7.10",
    ),
    _empty(
        name="patches: missing is a TypeError",
        clause="PP-02",
        encoder=MissingIsTypeError,
        source="transformers 5.24, sglang <= 0.5.13, vLLM 0.12",
    ),
    _empty(
        name="patches: missing is an assertion",
        clause="PP-02",
        encoder=MissingIsAssertion,
        source="vLLM 0.19 to 0.33",
    ),
    _empty(
        name="patches: missing is a RuntimeError", clause="PP-02", encoder=MissingIsRuntimeError
    ),
    _empty(name="patches: zero rows are enough", clause="PP-02", encoder=ZeroRowsAreEnough),
    _empty(name="patches: an empty list is moved", clause="PP-07", encoder=EmptyListIsMoved),
    _empty(name="patches: an empty list is stacked", clause="PP-07", encoder=EmptyListIsStacked),
    _dtype(name="patches: not cast", clause="PP-03", encoder=patches_only(Uncast)),
    _dtype(
        name="patches: through NumPy",
        clause="PP-03",
        encoder=patches_only(ThroughNumPy),
        dtypes=(torch.float32,),
    ),
    _dtype(
        name="patches: other dtypes are bytes",
        clause="PP-03",
        encoder=patches_only(LowPrecisionIsBytes),
    ),
    _dtype(
        name="patches: result in their dtype",
        clause="PP-03",
        encoder=patches_only(ResultInPixelsDtype),
        dtypes=(torch.float32,),
    ),
    _dtype(
        name="patches: through bfloat16",
        clause="PP-03",
        encoder=patches_only(ThroughBfloat16),
        dtypes=PRECISE,
    ),
    _dtype(
        name="patches: float64 is refused",
        clause="PP-03",
        encoder=patches_only(DoubleRefused),
        dtypes=(torch.float32,),
    ),
    _dtype(name="feature: not cast", clause="PP-06", encoder=feature_only(Uncast)),
    _dtype(
        name="feature: through NumPy",
        clause="PP-06",
        encoder=feature_only(ThroughNumPy),
        dtypes=(torch.float32,),
    ),
    _dtype(
        name="feature: other dtypes are bytes",
        clause="PP-06",
        encoder=feature_only(LowPrecisionIsBytes),
    ),
    _dtype(
        name="feature: result in its dtype",
        clause="PP-06",
        encoder=feature_only(ResultInPixelsDtype),
        dtypes=(torch.float32,),
    ),
    _dtype(
        name="feature: through bfloat16",
        clause="PP-06",
        encoder=feature_only(ThroughBfloat16),
        dtypes=PRECISE,
    ),
    _dtype(
        name="feature: float64 is refused",
        clause="PP-06",
        encoder=feature_only(DoubleRefused),
        dtypes=(torch.float32,),
    ),
)
