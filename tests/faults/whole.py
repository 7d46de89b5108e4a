"""Faults of the result as a whole."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import dataclasses
from functools import partial

import torch
from torch import Tensor

from reference.perception import PerceptionTower
from reference.tower import Tower
from tests.faults.fault import tower_fault


class Zeros(Tower):
    """The result is zero."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return torch.zeros_like(super().__call__(pixels))


class Constant(Tower):
    """The result is one and the same for all pictures."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return super().__call__(torch.ones_like(pixels))


class NotANumber(Tower):
    """The result is NaN."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return torch.full_like(super().__call__(pixels), torch.nan)


class WideResult(Tower):
    """The result is of a wider dtype than the model."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return super().__call__(pixels).double()


class FirstRowMissing(Tower):
    """The first row of each picture is lost."""

    def __call__(self, pixels: Tensor) -> Tensor:
        return super().__call__(pixels)[:, 1:]


class EpsilonOfOneNorm(Tower):
    """The first norm of a block reads the configuration, the second has the settled epsilon."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        if not name.endswith("2"):
            return super().norm(name, x)
        own, settled = self.config, 1e-6 if self.config.family == "step3" else 1e-5
        self.config = dataclasses.replace(own, norm_eps=settled)
        normed = super().norm(name, x)
        self.config = own
        return normed


class BaseOfOneAxis(PerceptionTower):
    """Columns turn with the base of the configuration, rows with the settled one."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        columns = super().angles(grid).chunk(2, dim=1)[0]
        own = self.config
        self.config = dataclasses.replace(own, rotary_base=10000.0)
        rows = super().angles(grid).chunk(2, dim=1)[1]
        self.config = own
        return torch.cat([columns, rows], dim=1)


_fault = partial(tower_fault, kind="constant or zero output", clause="EN-00")
_shape = partial(tower_fault, kind="shape or dtype", clause="LA-01")
_unsettled = partial(tower_fault, kind="unsettled values", clause="EN-13")

FAULTS = (
    _fault(Zeros, "result: zero", source="KernelBench #165"),
    _fault(Constant, "result: constant", source="KernelBench #165"),
    _fault(NotANumber, "result: NaN"),
    _shape(WideResult, "result: of a wider dtype"),
    _shape(FirstRowMissing, "result: a row missing"),
    _unsettled(EpsilonOfOneNorm, "norms: the configuration's epsilon for one of two"),
    _unsettled(BaseOfOneAxis, "rotary: the configuration's base for one of two axes"),
)
