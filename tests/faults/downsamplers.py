"""Faults of the downsamplers."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.faults.fault import PERCEPTION, PRECISE, tower_fault

_FIRST = ("vit_downsampler", "vit_downsampler1")
_SECOND = ("vit_downsampler2",)


def _is(name: str, ends: tuple[str, ...]) -> bool:
    return name.split(".")[-1] in ends


class NoFirstPadding(PerceptionTower):
    """The first has no padding."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        return super().convolve(name, x, stride=stride, padding=padding - _is(name, _FIRST))


class NoSecondPadding(Step3Tower):
    """The second has no padding."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        return super().convolve(name, x, stride=stride, padding=padding - _is(name, _SECOND))


class PaddingOfTheEnd(Tower):
    """A padding of one stands after the last row and column alone, on even sides, as in TF."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if not padding:
            return super().convolve(name, x, stride=stride, padding=0)
        rows, columns = x.shape[2] % 2, x.shape[3] % 2
        padded = F.pad(x, (columns, 1, rows, 1))
        return super().convolve(name, padded, stride=stride, padding=0)


class PaddingByTheEdge(Tower):
    """The padding repeats the edge."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        padded = F.pad(x, (padding,) * 4, mode="replicate")
        return super().convolve(name, padded, stride=stride, padding=0)


class FixedStride(Step3Tower):
    """The first has stride 2 whatever the configuration says."""

    def __init__(self, config: Any, *rest: Any) -> None:
        super().__init__(dataclasses.replace(config, downsampler_stride=2), *rest)


class DefaultStride(Step3Tower):
    """The first has stride 1 whatever the configuration says."""

    def __init__(self, config: Any, *rest: Any) -> None:
        super().__init__(dataclasses.replace(config, downsampler_stride=1), *rest)


class _Between(Tower):
    """Something between the downsamplers."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if _is(name, _SECOND):
            x = self.between(x)
        return super().convolve(name, x, stride=stride, padding=padding)

    def between(self, maps: Tensor) -> Tensor:
        """What the second reads."""
        raise NotImplementedError


class GeluBetween(_Between):
    """A GELU between the two."""

    def between(self, maps: Tensor) -> Tensor:
        return F.gelu(maps)


class ReluBetween(_Between):
    """A ReLU between the two."""

    def between(self, maps: Tensor) -> Tensor:
        return F.relu(maps)


class TransposedBetween(_Between):
    """Rows and columns are swapped between the two."""

    def between(self, maps: Tensor) -> Tensor:
        return maps.transpose(2, 3)


class NarrowBetween(_Between):
    """What stands between the two is rounded to bfloat16 in every model."""

    def between(self, maps: Tensor) -> Tensor:
        return maps.bfloat16().to(maps.dtype)


class ColumnsFirst(Tower):
    """Rows of the result go down the columns."""

    def downsample(self, maps: Tensor) -> Tensor:
        return super().downsample(maps).transpose(2, 3)


class TransposedGrid(Tower):
    """Tokens are laid out column by column, and taken up so again."""

    def downsample(self, maps: Tensor) -> Tensor:
        return super().downsample(maps.transpose(2, 3)).transpose(2, 3)


class FlippedKernels(Tower):
    """True convolutions, whose kernels are flipped."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if not _is(name, _FIRST + _SECOND):
            return super().convolve(name, x, stride=stride, padding=padding)
        weight, bias = self.weights[f"{name}.weight"].flip(2, 3), self.weights[f"{name}.bias"]
        return F.conv2d(x, weight, bias, stride=stride, padding=padding)


class NoFirstBias(Tower):
    """The first has no bias."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if not _is(name, _FIRST):
            return super().convolve(name, x, stride=stride, padding=padding)
        return F.conv2d(x, self.weights[f"{name}.weight"], stride=stride, padding=padding)


_fault = partial(tower_fault, kind="downsampler", clause="EN-10")
_rows = partial(tower_fault, kind="downsampler", clause="LA-01")

FAULTS = (
    _rows(NoFirstPadding, "downsamplers: the first not padded"),
    _rows(NoSecondPadding, "downsamplers: the second not padded"),
    _fault(PaddingOfTheEnd, "downsamplers: padded at the end"),
    _fault(PaddingByTheEdge, "downsamplers: padded by the edge"),
    _rows(FixedStride, "downsamplers: stride 2 for 1"),
    _rows(DefaultStride, "downsamplers: stride 1 for 2"),
    _fault(GeluBetween, "downsamplers: gelu between"),
    _fault(ReluBetween, "downsamplers: relu between"),
    _fault(TransposedBetween, "downsamplers: transposed between", families=PERCEPTION),
    _fault(NarrowBetween, "downsamplers: in bfloat16", dtypes=PRECISE),
    _fault(ColumnsFirst, "downsamplers: result by columns"),
    _fault(TransposedGrid, "downsamplers: grid transposed"),
    _fault(FlippedKernels, "downsamplers: kernels flipped"),
    _fault(NoFirstBias, "downsamplers: the first without bias"),
)
