"""Faults in the global state of torch that a call leaves behind."""

# ruff: noqa: D102 - the methods are those of `Stepwise`, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.faults.fault import Fault
from tests.faults.stepwise import Stepwise


class _Around(Stepwise):
    """Does something about the state of torch around each call."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        self.disturb()
        return super().get_image_feature(items)

    def disturb(self) -> None:
        """Change global state."""
        raise NotImplementedError


class DrawsNumbers(_Around):
    """A call draws random numbers, as dropout in training mode does."""

    def disturb(self) -> None:
        torch.rand(1)


class Seeds(_Around):
    """A call seeds the generator to be reproducible."""

    def disturb(self) -> None:
        torch.manual_seed(0)


class GradModeOff(_Around):
    """A call turns gradients off for good."""

    def disturb(self) -> None:
        torch.set_grad_enabled(False)


class MatmulPrecisionSet(_Around):
    """A call allows matrix products in less precision from then on."""

    def disturb(self) -> None:
        torch.set_float32_matmul_precision("high")


class DeterministicSet(_Around):
    """A call asks for deterministic algorithms from then on."""

    def disturb(self) -> None:
        torch.use_deterministic_algorithms(True, warn_only=True)


class TF32Set(_Around):
    """A call turns TensorFloat-32 on from then on."""

    def disturb(self) -> None:
        torch.backends.cuda.matmul.allow_tf32 = True


class DefaultDtypeSet(_Around):
    """A call leaves the model's dtype, or its own of float32, as the default."""

    def disturb(self) -> None:
        wider = torch.float64 if self.dtype == torch.float32 else torch.float32
        torch.set_default_dtype(wider)


class DefaultDtypeNotRestored(Stepwise):
    """The default dtype is put back, unless the call fails."""

    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        rows = super().get_image_feature(items)
        torch.set_default_dtype(before)
        return rows


_state = functools.partial(Fault, kind="global state", clause="SE-05")

FAULTS = (
    _state(name="state: draws numbers", encoder=DrawsNumbers),
    _state(name="state: seeds", encoder=Seeds),
    _state(name="state: grad mode off", encoder=GradModeOff),
    _state(name="state: matmul precision", encoder=MatmulPrecisionSet),
    _state(name="state: deterministic algorithms", encoder=DeterministicSet),
    _state(name="state: TF32", encoder=TF32Set),
    _state(name="state: default dtype", encoder=DefaultDtypeSet),
    _state(name="state: default dtype after an error", encoder=DefaultDtypeNotRestored),
)
