"""Faults of precision and range: right in exact arithmetic."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from reference.tower import Tower
from tests.faults.fault import PERCEPTION, PRECISE, STEP3, tower_fault

HALF = (torch.float16,)


class NarrowProducts(Tower):
    """Matrix products take bfloat16 in every model."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        return super().linear(name, x.bfloat16().to(x.dtype))


class TensorFloat(Tower):
    """Matrix products take ten bits of the mantissa, as TF32 does."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        # Adding and taking away 2^13 times a value leaves its upper eleven bits.
        large = x * 2.0**13
        return super().linear(name, (x + large) - large)


class NarrowStream(Tower):
    """What a block gives is rounded to bfloat16 in every model."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().block(layer, tokens, grid).bfloat16().to(tokens.dtype)


class ScaledUpAndDown(Tower):
    """What the downsamplers read is scaled up, and down again."""

    def downsample(self, maps: Tensor) -> Tensor:
        return super().downsample(maps * 64 / 64)


class PlainSoftmax(Tower):
    """The softmax does not take the largest score away."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        powers = ((query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)).exp()
        weights = powers / powers.sum(dim=-1, keepdim=True)
        return (weights @ value).transpose(1, 2).flatten(2)


class PlainSigmoid(Tower):
    """The sigmoid is e^x / (1 + e^x)."""

    def activate(self, x: Tensor) -> Tensor:
        if self.config.hidden_act != "quick_gelu":
            return super().activate(x)
        power = (1.702 * x).exp()
        return x * (power / (1 + power))


_fault = partial(tower_fault, kind="accumulation", dtypes=PRECISE)
_overflow = partial(tower_fault, kind="fp16 overflow", clause="EN-12")

FAULTS = (
    # Rounding is on every path: the clause is the first in which it can be seen.
    _fault(NarrowProducts, "precision: products in bfloat16", clause="EN-10"),
    _fault(TensorFloat, "precision: products in TF32", clause="EN-10"),
    _fault(NarrowStream, "precision: stream in bfloat16", clause="EN-05", families=PERCEPTION),
    _fault(NarrowStream, "precision: sums in bfloat16", clause="EN-05", families=STEP3),
    _overflow(PlainSoftmax, "range: softmax without its maximum"),
    _overflow(PlainSigmoid, "range: sigmoid that overflows", dtypes=HALF),
    _overflow(ScaledUpAndDown, "range: scaled up and down", dtypes=HALF),
)
