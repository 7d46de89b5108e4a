"""Faults of the projector."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

from torch import Tensor
from torch.nn import functional as F

from reference.tower import Tower
from tests.faults.fault import tower_fault


class _OwnProjector(Tower):
    """The projector as one method."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        if name != "vit_large_projector":
            return super().linear(name, x)
        return self.project(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The last product."""
        return F.linear(x, weight, bias)


class NoBias(_OwnProjector):
    """The bias is passed over."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # noqa: ARG002
        return super().project(x, weight, None)


class NegativeBias(_OwnProjector):
    """The bias is subtracted."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super().project(x, weight, None if bias is None else -bias)


class ReadTransposed(_OwnProjector):
    """The weight is read as if it were stored transposed."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super().project(x, weight.reshape(weight.shape[::-1]).T, bias)


class TransposedIfSquare(_OwnProjector):
    """A square weight is transposed."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super().project(x, weight.T if weight.shape[0] == weight.shape[1] else weight, bias)


class GeluAfter(_OwnProjector):
    """A GELU follows."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.gelu(super().project(x, weight, bias))


class NormBefore(_OwnProjector):
    """A norm stands before it."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super().project(F.layer_norm(x, x.shape[-1:]), weight, bias)


class ScaledByWidth(_OwnProjector):
    """The result is scaled as word embeddings are in some language models."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super().project(x, weight, bias) * self.config.text_width**0.5


class UnitRows(_OwnProjector):
    """The rows of the result are scaled to unit length."""

    def project(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.normalize(super().project(x, weight, bias), dim=-1)


_fault = partial(tower_fault, kind="projector", clause="EN-11")

FAULTS = (
    _fault(NoBias, "projector: no bias"),
    _fault(NegativeBias, "projector: bias subtracted"),
    _fault(ReadTransposed, "projector: read transposed"),
    _fault(TransposedIfSquare, "projector: transposed if square"),
    _fault(GeluAfter, "projector: gelu after"),
    _fault(NormBefore, "projector: a norm before"),
    _fault(ScaledByWidth, "projector: scaled by the width"),
    _fault(UnitRows, "projector: rows of unit length"),
)
