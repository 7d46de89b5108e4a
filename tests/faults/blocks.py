"""Faults of the order of blocks."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

from torch import Tensor

from reference.tower import Tower
from tests.faults.fault import tower_fault


class LastDropped(Tower):
    """The last block is dropped."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return tokens if layer == self.config.layers - 1 else super().block(layer, tokens, grid)


class FirstDropped(Tower):
    """The first block is dropped."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return tokens if layer == 0 else super().block(layer, tokens, grid)


class AllTheFirst(Tower):
    """Every block has the first one's weights."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:  # noqa: ARG002
        return super().block(0, tokens, grid)


class FirstTwice(Tower):
    """The first block is run twice."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        if layer == 0:
            tokens = super().block(layer, tokens, grid)
        return super().block(layer, tokens, grid)


class LastTwice(Tower):
    """The last block is run twice."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        if layer == self.config.layers - 1:
            tokens = super().block(layer, tokens, grid)
        return super().block(layer, tokens, grid)


class Reversed(Tower):
    """Blocks are run from the last to the first."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().block(self.config.layers - 1 - layer, tokens, grid)


_fault = partial(tower_fault, kind="last layer dropped, layers shared", clause="EN-01")

FAULTS = (
    _fault(LastDropped, "blocks: the last dropped"),
    _fault(FirstDropped, "blocks: the first dropped"),
    _fault(AllTheFirst, "blocks: the first one's weights for all"),
    _fault(FirstTwice, "blocks: the first twice"),
    _fault(LastTwice, "blocks: the last twice"),
    _fault(Reversed, "blocks: in reverse"),
)
