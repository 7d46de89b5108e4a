"""Faults of pictures that are encoded together."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference import ReferenceEncoder
from reference.tower import Tower
from tests.faults.fault import PRECISE, Fault, with_tower


class Together(ReferenceEncoder):
    """The reference that encodes all pictures of a tensor in one batch."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        self.require_pixels(name, pixels)
        return list(self.encode(pixels)) if len(pixels) else []


class SharedAttention(Tower):
    """Tokens attend to those of all pictures."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        packed = (x.transpose(0, 1).flatten(1, 2)[None] for x in (query, key, value))
        joined = super().attend(*packed)
        return joined.unflatten(1, (len(query), -1))[0]


class UnmaskedPictures(Tower):
    """Tokens attend to the padding that fills a batch up to four pictures."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        tokens = key.shape[2] * (-len(key) % 4 if len(key) > 1 else 0)
        key, value = F.pad(key, (0, 0, 0, tokens)), F.pad(value, (0, 0, 0, tokens))
        return super().attend(query, key, value)


class MaskedByProduct(Tower):
    """Tokens of other pictures get weight zero, which a NaN survives."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        attended = super().attend(query, key, value)
        others = sum(x for x in value.transpose(1, 2).flatten(2))
        return attended + 0 * others


class MeanOfTheBatch(Tower):
    """The mean of all pictures is taken from each."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        if len(pixels) == 1:
            return super().embed_patches(pixels)
        return super().embed_patches(pixels - pixels.mean(dim=(0, 2, 3), keepdim=True))


class StatisticsOfTheBatch(Tower):
    """Norms take the statistics of all pictures, where there are several."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        if len(x) == 1:
            return super().norm(name, x)
        variance, mean = torch.var_mean(x, dim=(0, 2), keepdim=True, correction=0)
        unit = (x - mean) * torch.rsqrt(variance + self.config.norm_eps)
        return unit * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


class FirstForAll(Tower):
    """The first picture's rows stand for all."""

    def __call__(self, pixels: Tensor) -> Tensor:
        rows = super().__call__(pixels)
        return rows[:1].expand_as(rows)


class LowerPrecisionForMany(Tower):
    """Batches of several pictures take another kernel, which keeps bfloat16."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        tokens = super().block(layer, tokens, grid)
        return tokens if len(tokens) == 1 else tokens.bfloat16().to(tokens.dtype)


class SpreadByTheRange(Tower):
    """Pixels are brought to the range of the batch and back."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels.clamp(max=pixels.max()))


class ScrubbedPixels(Tower):
    """NaN and infinity become numbers."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels.nan_to_num())


def _together(mixin: type[Tower]) -> type[ReferenceEncoder]:
    encoder = with_tower(mixin)
    return type(f"{mixin.__name__}Together", (Together,), {"towers": encoder.towers})


class PatchesOfTheNextImage(ReferenceEncoder):
    """In an item of several images each patch is encoded with its neighbours'."""

    several = False

    def item_rows(self, item: Any) -> list[Tensor]:
        self.several = isinstance(item.feature, Tensor) and len(item.feature) > 1
        return super().item_rows(item)

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        if name == "feature" or not self.several:
            return super().pictures(name, pixels)
        self.require_pixels(name, pixels)
        return list(self.encode((pixels + pixels.roll(1, 0)) / 2))


class RoundedInBatches(ReferenceEncoder):
    """Several pictures take a kernel that rounds in another way."""

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        rows = super().pictures(name, pixels)
        if len(rows) == 1:
            return rows
        return [row * (1 + torch.finfo(self.dtype).eps) for row in rows]


_fault = partial(Fault, kind="batch dependence", clause="BA-01")
_leak = partial(Fault, kind="leak between images", clause="BA-03")
_nan = partial(Fault, kind="leak between images", clause="BA-04")

FAULTS = (
    _fault(
        name="company: attention over all pictures",
        encoder=_together(SharedAttention),
        source="vllm-ascend reports",
    ),
    _fault(
        name="company: the batch's padding not masked",
        encoder=_together(UnmaskedPictures),
        source="vLLM #10891, #53531",
    ),
    _fault(name="company: the batch's mean taken away", encoder=_together(MeanOfTheBatch)),
    _fault(name="company: norms of the batch", encoder=_together(StatisticsOfTheBatch)),
    _fault(name="company: the first picture for all", encoder=_together(FirstForAll)),
    _fault(
        name="company: bfloat16 in batches",
        encoder=_together(LowerPrecisionForMany),
        dtypes=PRECISE,
    ),
    _leak(name="company: patches mixed with their neighbours", encoder=PatchesOfTheNextImage),
    _nan(name="company: masked by a product", encoder=_together(MaskedByProduct)),
    _nan(name="company: clamped to the batch's range", encoder=_together(SpreadByTheRange)),
    _nan(name="company: NaN made a number", encoder=_together(ScrubbedPixels)),
    Fault(
        name="company: rounded otherwise in batches",
        kind="batch dependence",
        clause="BA-05",
        encoder=RoundedInBatches,
    ),
)
