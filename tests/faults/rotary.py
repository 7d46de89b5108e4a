"""Faults of the rotary embedding."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.perception import PerceptionTower
from reference.rotary import rotate
from reference.tower import Tower
from tests.faults.fault import PRECISE, Fault, tower_fault


class HeightFirst(PerceptionTower):
    """The first half of the channels turns with the row."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        return torch.cat(super().angles(grid).chunk(2, dim=1)[::-1], dim=1)


class AlternatingAxes(PerceptionTower):
    """Pairs turn with the column and the row in turn."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        columns, rows = super().angles(grid).unflatten(1, (2, -1, 2)).unbind(1)
        return torch.stack([columns, rows], dim=2).flatten(1)


class RowsAlone(PerceptionTower):
    """The half that should turn with the column does not turn."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        columns, rows = super().angles(grid).chunk(2, dim=1)
        return torch.cat([torch.zeros_like(columns), rows], dim=1)


class NoRotary(PerceptionTower):
    """Nothing turns."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        return torch.zeros_like(super().angles(grid))


class OppositeTurn(PerceptionTower):
    """Everything turns the other way."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        return -super().angles(grid)


class TiledFrequencies(PerceptionTower):
    """The frequencies of a half are tiled, not doubled in place."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        halves = super().angles(grid).chunk(2, dim=1)
        return torch.cat([half[:, ::2].repeat(1, 2) for half in halves], dim=1)


class NativeWidth(PerceptionTower):
    """Cells are counted in rows of the native width."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        native, first = self.config.grid, int(self.config.class_token)
        rows = -(-grid[0] * grid[1] // native)
        return super().angles((max(rows, native), native))[: first + grid[0] * grid[1]]


class StretchedPositions(PerceptionTower):
    """Positions are stretched to the native grid."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        columns, rows = super().angles(grid).chunk(2, dim=1)
        native = self.config.grid
        return torch.cat([columns * (native / grid[1]), rows * (native / grid[0])], dim=1)


class OneLongRow(PerceptionTower):
    """Both halves turn with the number of the cell."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        columns = super().angles((1, grid[0] * grid[1])).chunk(2, dim=1)[0]
        return torch.cat([columns, columns], dim=1)


class OtherBase(PerceptionTower):
    """The base is that of DINO and Pixtral."""

    def __init__(self, config: Any, *rest: Any) -> None:
        super().__init__(dataclasses.replace(config, rotary_base=100.0), *rest)


class ExponentsOfTheHead(PerceptionTower):
    """Frequencies fall over the channels of a head, not of half a head."""

    def __init__(self, config: Any, *rest: Any) -> None:
        root = config.rotary_base**0.5
        super().__init__(dataclasses.replace(config, rotary_base=root), *rest)


class NarrowTable(PerceptionTower):
    """Cosines and sines come from angles in bfloat16 in every model."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        return super().angles(grid).bfloat16().to(self.wide)


class _OwnTurn(PerceptionTower):
    """Attention with its turning as one method."""

    def attention(self, layer: int, name: str, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        weight, bias = self.weights[f"{name}.in_proj_weight"], self.weights[f"{name}.in_proj_bias"]
        query, key, value = self.split_heads(F.linear(tokens, weight, bias))
        if self.config.rotary:
            query, key, value = self.turn(self.angles(grid), query, key, value)
        self.probe_scores(layer, query, key)
        return self.linear(f"{name}.out_proj", self.attend(query, key, value))

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values after rotary."""
        raise NotImplementedError


class QueriesAlone(_OwnTurn):
    """Queries turn, keys do not."""

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return rotate(query, angles), key, value


class ValuesToo(_OwnTurn):
    """Values turn as well."""

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return rotate(query, angles), rotate(key, angles), rotate(value, angles)


class KeysForValues(_OwnTurn):
    """Queries and values turn, keys do not."""

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return rotate(query, angles), key, rotate(value, angles)


class HalfSplit(_OwnTurn):
    """A channel is paired with the one half a head away."""

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        angles = angles[:, ::2].repeat(1, 2)

        def turned(x: Tensor) -> Tensor:
            first, second = x.chunk(2, dim=-1)
            return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()

        return turned(query), turned(key), value


class TurnedTwice(_OwnTurn):
    """Queries and keys turn twice."""

    def turn(
        self, angles: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return rotate(query, 2 * angles), rotate(key, 2 * angles), value


def _fault(mixin: type[Tower], kind: str, what: str, source: str = "", **options: Any) -> Fault:
    name, kind = f"rotary: {what}", f"rotary: {kind}"
    return tower_fault(mixin, name, kind=kind, clause="EN-07", source=source, **options)


FAULTS = (
    _fault(HeightFirst, "order", "height first", "transformers 5.16-5.22"),
    _fault(AlternatingAxes, "order", "column and row in turn"),
    _fault(RowsAlone, "order", "rows alone"),
    _fault(HalfSplit, "layout", "half-split", "ports"),
    _fault(TiledFrequencies, "layout", "frequencies tiled"),
    _fault(OppositeTurn, "layout", "the other way"),
    _fault(NativeWidth, "positions", "native width on other grids"),
    _fault(StretchedPositions, "positions", "stretched to the native grid"),
    _fault(OneLongRow, "positions", "one long row"),
    _fault(
        NarrowTable,
        "precision",
        "table in bfloat16",
        "TensorRT-LLM, Automodel #3856",
        dtypes=PRECISE,
    ),
    _fault(NoRotary, "missing", "missing", "SteptronOss"),
    _fault(QueriesAlone, "missing", "queries alone"),
    _fault(ValuesToo, "values", "values too"),
    _fault(KeysForValues, "values", "values instead of keys"),
    _fault(TurnedTwice, "values", "queries and keys twice"),
    _fault(OtherBase, "frequencies", "another base"),
    _fault(ExponentsOfTheHead, "frequencies", "exponents over the whole head"),
)
