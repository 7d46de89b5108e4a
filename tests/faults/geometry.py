"""Faults of grids that are not square or not native."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.perception import PerceptionTower
from reference.rotary import rotary_angles
from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.faults.fault import tower_fault


class SquareOfTheCount(Tower):
    """As many cells as a square has are laid out as a square."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        cells = super().embed_patches(pixels).flatten(2)
        side = math.isqrt(cells.shape[2])
        if side**2 != cells.shape[2]:
            return super().embed_patches(pixels)
        return cells.unflatten(2, (side, side))


class SquareAfterTheBlocks(Tower):
    """As many tokens as a square has are laid out as a square before the downsamplers."""

    def downsample(self, maps: Tensor) -> Tensor:
        side = math.isqrt(maps.shape[2] * maps.shape[3])
        if side**2 == maps.shape[2] * maps.shape[3]:
            maps = maps.flatten(2).unflatten(2, (side, side))
        return super().downsample(maps)


class NearestSquare(Tower):
    """Cells beyond the largest square that they fill are dropped."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        cells = super().embed_patches(pixels).flatten(2)
        side = math.isqrt(cells.shape[2])
        return cells[:, :, : side**2].unflatten(2, (side, side))


class CutToSquare(Tower):
    """The longer side is cut to the shorter."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        side = min(pixels.shape[2:])
        return super().embed_patches(pixels[..., :side, :side])


class SidesSwapped(Tower):
    """Positions are resampled to columns and rows in place of rows and columns."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        return super().positions(grid[::-1])


class HeightForBoth(Tower):
    """Positions are resampled to a square as high as the grid, then cut or repeated."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        table, first = super().positions((grid[0], grid[0])), int(self.config.class_token)
        cells = grid[0] * grid[1]
        repeated = table[first:].repeat(math.ceil(grid[1] / grid[0]), 1)
        return torch.cat([table[:first], repeated[:cells]])


class RowsOfTheHeight(PerceptionTower):
    """Rotary counts cells in rows as long as the grid is high."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        cells = grid[0] * grid[1]
        first = int(self.config.class_token)
        return super().angles((math.ceil(cells / grid[0]), grid[0]))[: first + cells]


class AliasedRotary(PerceptionTower):
    """A cell's angles are entry row * native + column of the native table, grown downwards."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        native, first = self.config.grid, int(self.config.class_token)
        rows = grid[0] + math.ceil(grid[1] / native)
        table = super().angles((rows, native))
        cells = torch.arange(grid[0])[:, None] * native + torch.arange(grid[1])
        return torch.cat([table[:first], table[first:][cells.flatten()]])


class WrappedPositions(Tower):
    """Cells beyond the native grid begin the position table again."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        native, first = self.config.grid, int(self.config.class_token)
        if max(grid) <= native:
            return super().positions(grid)
        table = super().positions((native, native))
        rows, columns = (torch.arange(side) % native for side in grid)
        cells = rows[:, None] * native + columns
        return torch.cat([table[:first], table[first:][cells.flatten()]])


class ClampedPositions(Tower):
    """Cells beyond the native grid have the positions of its edge."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        native, first = self.config.grid, int(self.config.class_token)
        if max(grid) <= native:
            return super().positions(grid)
        table = super().positions((native, native))
        rows, columns = (torch.arange(side).clamp(max=native - 1) for side in grid)
        cells = rows[:, None] * native + columns
        return torch.cat([table[:first], table[first:][cells.flatten()]])


class ClampedRotary(PerceptionTower):
    """Cells beyond the native grid turn as those of its edge."""

    def angles(self, grid: tuple[int, int]) -> Tensor:
        config = self.config
        rows, columns = (min(side, config.grid) for side in grid)
        angles = rotary_angles(
            (rows, columns),
            config.head_dim,
            base=config.rotary_base,
            class_token=False,
            dtype=self.wide,
            device=self.weights["vit_large_projector.weight"].device,
        )
        missing = (0, grid[1] - columns, 0, grid[0] - rows)
        square = angles.T.unflatten(1, (rows, columns))[None]
        cells = F.pad(square, missing, mode="replicate")[0].flatten(1).T
        return cells if not config.class_token else super().angles(grid)


class CutToNative(Tower):
    """Pictures larger than the native one are cut to it."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        side = self.config.image_size
        return super().embed_patches(pixels[..., :side, :side])


class OddSideDropped(PerceptionTower):
    """The last row and column of an odd grid are dropped."""

    def downsample(self, maps: Tensor) -> Tensor:
        rows, columns = (side // 2 * 2 or 1 for side in maps.shape[2:])
        return super().downsample(maps[:, :, :rows, :columns])


class OddSidePadded(Step3Tower):
    """Odd sides are padded for the first downsampler."""

    def downsample(self, maps: Tensor) -> Tensor:
        rows, columns = (side % 2 for side in maps.shape[2:])
        return super().downsample(F.pad(maps, (0, columns, 0, rows)))


_square = partial(tower_fault, kind="non-square grids", clause="MA-06")
_rectangle = partial(tower_fault, kind="non-square grids", clause="MA-07")
_wide = partial(tower_fault, kind="wide grids", clause="MA-11")
_odd = partial(tower_fault, kind="downsampler", clause="LA-01")

FAULTS = (
    _square(SquareOfTheCount, "grid: a square of the same count"),
    _square(SquareAfterTheBlocks, "grid: a square after the blocks"),
    _rectangle(NearestSquare, "grid: the largest square it fills"),
    _rectangle(CutToSquare, "grid: cut to a square"),
    _rectangle(SidesSwapped, "positions: sides swapped"),
    _rectangle(HeightForBoth, "positions: the height for both sides"),
    _rectangle(RowsOfTheHeight, "rotary: rows as long as the grid is high"),
    _wide(AliasedRotary, "rotary: aliased beyond the native width"),
    _wide(ClampedRotary, "rotary: clamped beyond the native grid"),
    _wide(WrappedPositions, "positions: wrapped beyond the native grid"),
    _wide(ClampedPositions, "positions: clamped beyond the native grid"),
    _wide(CutToNative, "grid: cut to the native one"),
    _odd(OddSideDropped, "grid: odd sides cut"),
    _odd(OddSidePadded, "grid: odd sides padded"),
)
