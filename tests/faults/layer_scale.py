"""Faults of the layer scale."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

from torch import Tensor

from reference.perception import PerceptionTower
from tests.faults.fault import tower_fault


class NoScale(PerceptionTower):
    """No branch is scaled."""

    def scale(self, name: str, x: Tensor) -> Tensor:  # noqa: ARG002
        return x


class AttentionAlone(PerceptionTower):
    """Attention is scaled, the MLP is not."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return x if name.endswith("ls_2") else super().scale(name, x)


class MlpAlone(PerceptionTower):
    """The MLP is scaled, attention is not."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return x if name.endswith("ls_1") else super().scale(name, x)


class SwappedScales(PerceptionTower):
    """Attention and MLP have each other's scales."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        other = {"1": "2", "2": "1"}[name[-1]]
        return super().scale(name[:-1] + other, x)


class OneScale(PerceptionTower):
    """Both branches have attention's scale."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return super().scale(f"{name[:-1]}1", x)


class ScaledTwice(PerceptionTower):
    """Each branch is scaled twice."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return super().scale(name, super().scale(name, x))


class InitialScale(PerceptionTower):
    """Branches are scaled by the initial value of the configuration."""

    def scale(self, name: str, x: Tensor) -> Tensor:  # noqa: ARG002
        return x if self.config.layer_scale is None else x * self.config.layer_scale


class ScalarScale(PerceptionTower):
    """All channels are scaled by the first one's gamma."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return x * self.weights[f"{name}.gamma"][0]


class ScaleFromOne(PerceptionTower):
    """Gamma is what the scale has beyond one."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return x + super().scale(name, x)


class AbsoluteScale(PerceptionTower):
    """Negative gammas lose their sign."""

    def scale(self, name: str, x: Tensor) -> Tensor:
        return x * self.weights[f"{name}.gamma"].abs()


_fault = partial(tower_fault, kind="layer scale", clause="EN-06")

FAULTS = (
    _fault(NoScale, "layer scale: skipped"),
    _fault(AttentionAlone, "layer scale: attention alone"),
    _fault(MlpAlone, "layer scale: MLP alone"),
    _fault(SwappedScales, "layer scale: swapped"),
    _fault(OneScale, "layer scale: attention's for both"),
    _fault(ScaledTwice, "layer scale: twice"),
    _fault(InitialScale, "layer scale: the initial value"),
    _fault(ScalarScale, "layer scale: one gamma for all channels"),
    _fault(ScaleFromOne, "layer scale: beyond one"),
    _fault(AbsoluteScale, "layer scale: without sign"),
)
