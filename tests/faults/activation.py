"""Faults of the activation."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.tower import Tower
from tests.faults.fault import PRECISE, tower_fault


class _OwnQuickGelu(Tower):
    """`quick_gelu` as one method."""

    def activate(self, x: Tensor) -> Tensor:
        return self.quick_gelu(x) if self.config.hidden_act == "quick_gelu" else F.gelu(x)

    def quick_gelu(self, x: Tensor) -> Tensor:
        """What stands for `quick_gelu`."""
        raise NotImplementedError


class Gelu(_OwnQuickGelu):
    """`gelu` whatever the configuration says."""

    def quick_gelu(self, x: Tensor) -> Tensor:
        return F.gelu(x)


class RoundedFactor(_OwnQuickGelu):
    """The factor is 1.7."""

    def quick_gelu(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.7 * x)


class Silu(_OwnQuickGelu):
    """The factor is 1."""

    def quick_gelu(self, x: Tensor) -> Tensor:
        return F.silu(x)


class Relu(_OwnQuickGelu):
    """`relu`."""

    def quick_gelu(self, x: Tensor) -> Tensor:
        return F.relu(x)


class NarrowQuickGelu(_OwnQuickGelu):
    """`quick_gelu` in bfloat16 in every model."""

    def quick_gelu(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x.bfloat16()).to(x.dtype)


class QuickGelu(Tower):
    """`quick_gelu` whatever the configuration says."""

    def activate(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class TanhGelu(Tower):
    """`gelu` is the approximation by tanh."""

    def activate(self, x: Tensor) -> Tensor:
        approximate = F.gelu(x, approximate="tanh")
        return approximate if self.config.hidden_act == "gelu" else super().activate(x)


class NoActivation(Tower):
    """The MLP is linear."""

    def activate(self, x: Tensor) -> Tensor:
        return x


class ActivatedTwice(Tower):
    """The activation is applied twice."""

    def activate(self, x: Tensor) -> Tensor:
        return super().activate(super().activate(x))


_fault = partial(tower_fault, kind="activation", clause="EN-09")

FAULTS = (
    _fault(Gelu, "activation: gelu for quick_gelu"),
    _fault(QuickGelu, "activation: quick_gelu for gelu"),
    _fault(TanhGelu, "activation: tanh for gelu"),
    _fault(RoundedFactor, "activation: 1.7 for 1.702"),
    _fault(Silu, "activation: silu"),
    _fault(Relu, "activation: relu"),
    _fault(NarrowQuickGelu, "activation: in bfloat16", dtypes=PRECISE),
    _fault(NoActivation, "activation: none"),
    _fault(ActivatedTwice, "activation: twice"),
)
