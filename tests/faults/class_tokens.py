"""Faults of the class tokens."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import torch
from torch import Tensor

from reference.perception import PerceptionTower
from reference.rotary import rotary_angles
from reference.step3 import CLASS_TOKENS, Step3Tower
from tests.faults.fault import tower_fault


class DroppedFromTheEnd(Step3Tower):
    """The last four tokens are dropped."""

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, :-CLASS_TOKENS]


class DroppedFromTheEndOfOne(PerceptionTower):
    """The last token is dropped."""

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, : -int(self.config.class_token) or None]


class ThreeDropped(Step3Tower):
    """Three tokens are dropped, and the last cell is cut to make the grid."""

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, CLASS_TOKENS - 1 : -1]


class FiveDropped(Step3Tower):
    """Five tokens are dropped, and the first token makes the grid full."""

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens.roll(-1, dims=1)[:, CLASS_TOKENS:]


class OneCopy(Step3Tower):
    """The class token stands once."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().embed(tokens, grid)[:, CLASS_TOKENS - 1 :]

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, 1:]


class TwoCopies(Step3Tower):
    """The class token stands twice."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().embed(tokens, grid)[:, 2:]

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, 2:]


class NoClassToken(Step3Tower):
    """No class token takes part."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().embed(tokens, grid)[:, CLASS_TOKENS:]

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens


class IgnoredClassToken(PerceptionTower):
    """The class token of the configuration is passed over."""

    def __init__(self, config: Any, *rest: Any) -> None:
        super().__init__(dataclasses.replace(config, class_token=False), *rest)

    def positions(self, grid: tuple[int, int]) -> Tensor:
        name = "vision_model.positional_embedding"
        self.weights = {**self.weights, name: self.weights[name][-(self.config.grid**2) :]}
        return super().positions(grid)


class PlainClassToken(PerceptionTower):
    """The class token is zero until the first norm."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        name = "vision_model.class_embedding"
        if self.config.class_token:
            self.weights = {**self.weights, name: torch.zeros_like(self.weights[name])}
        return super().embed(tokens, grid)


class NoClassPosition(Step3Tower):
    """Positions are added to cells alone."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        table = super().positions(grid)
        return torch.cat([torch.zeros_like(table[:1]), table[1:]])


class NoClassPositionOfOne(PerceptionTower):
    """Positions are added to cells alone."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        table, first = super().positions(grid), int(self.config.class_token)
        return torch.cat([torch.zeros_like(table[:first]), table[first:]])


class CellsFromTheOrigin(PerceptionTower):
    """With a class token cells still count from (0, 0)."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        angles = rotary_angles(
            grid,
            self.config.head_dim,
            base=self.config.rotary_base,
            class_token=False,
            dtype=self.wide,
            device=self.weights["vit_large_projector.weight"].device,
        )
        return torch.cat([angles.new_zeros(int(self.config.class_token), angles.shape[1]), angles])


class AnglesOfTheNextCell(PerceptionTower):
    """The angles begin with the first cell's, so that each cell has the next one's."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        return super().angles(grid).roll(-int(self.config.class_token), dims=0)


_fault = partial(tower_fault, kind="class tokens", clause="EN-04")
_rotary = partial(tower_fault, kind="rotary: positions", clause="EN-04")

FAULTS = (
    _fault(DroppedFromTheEnd, "class tokens: dropped from the end"),
    _fault(DroppedFromTheEndOfOne, "class token: dropped from the end"),
    _fault(ThreeDropped, "class tokens: three dropped"),
    _fault(FiveDropped, "class tokens: five dropped"),
    _fault(OneCopy, "class tokens: one copy"),
    _fault(TwoCopies, "class tokens: two copies"),
    _fault(NoClassToken, "class tokens: none"),
    _fault(IgnoredClassToken, "class token: passed over"),
    _fault(PlainClassToken, "class token: zero"),
    _fault(NoClassPosition, "class tokens: no position"),
    _fault(NoClassPositionOfOne, "class token: no position"),
    _rotary(CellsFromTheOrigin, "class token: cells count from the origin"),
    _rotary(AnglesOfTheNextCell, "class token: cells turn by the next one's angles"),
)
