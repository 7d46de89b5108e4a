"""Faults of the position table."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.faults.fault import PRECISE, tower_fault

_NAMES = {True: "embeddings.position_embedding.weight", False: "positional_embedding"}


class _Resampled(Tower):
    """Both architectures' positions, with the resampling as one method."""

    options: Mapping[str, Any] = {}

    @property
    def table(self) -> Tensor:
        """The table as it is stored."""
        return self.weights[f"vision_model.{_NAMES[self.config.family == 'step3']}"]

    def positions(self, grid: tuple[int, int]) -> Tensor:
        native, first = self.config.grid, int(self.config.class_token)
        if grid == (native, native):
            return self.table
        picture = self.table[first:].unflatten(0, (native, native)).permute(2, 0, 1)[None]
        resampled = self.resample(picture.to(self.wide), grid)
        cells = resampled[0].flatten(1).T.to(self.table.dtype)
        return torch.cat([self.table[:first], cells])

    def resample(self, picture: Tensor, grid: tuple[int, int]) -> Tensor:
        """The table `(1, width, native, native)` for another grid."""
        step3 = self.config.family == "step3"
        right = {"mode": "bicubic" if step3 else "bilinear", "antialias": step3}
        return F.interpolate(picture, **{"size": grid, **right, **self.options})


class Bilinear(_Resampled, Step3Tower):
    """Bilinear, as the other families."""

    options = {"mode": "bilinear"}  # noqa: RUF012


class Bicubic(_Resampled, PerceptionTower):
    """Bicubic, as `step3`."""

    options = {"mode": "bicubic"}  # noqa: RUF012


class NotAntialiased(_Resampled, Step3Tower):
    """No antialiasing, as the other families."""

    options = {"antialias": False}  # noqa: RUF012


class Antialiased(_Resampled, PerceptionTower):
    """Antialiased, as `step3`."""

    options = {"antialias": True}  # noqa: RUF012


class CornersAligned(_Resampled):
    """The corners of both grids coincide."""

    options = {"align_corners": True}  # noqa: RUF012


class Nearest(_Resampled):
    """The nearest entry of the table."""

    options = {"mode": "nearest", "antialias": False}  # noqa: RUF012


class ScaledByFactor(_Resampled):
    """A factor of (g + 0.1) / native in place of a size, against rounding, as DINO has it."""

    def resample(self, picture: Tensor, grid: tuple[int, int]) -> Tensor:
        factor = tuple((side + 0.1) / self.config.grid for side in grid)
        self.options = {"size": None, "scale_factor": factor, "recompute_scale_factor": False}
        return super().resample(picture, grid)


class Cropped(_Resampled):
    """The upper left corner of the table."""

    def resample(self, picture: Tensor, grid: tuple[int, int]) -> Tensor:
        return picture[:, :, : grid[0], : grid[1]]


class FirstRows(_Resampled):
    """As many entries of the table as there are cells."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        return self.table[: grid[0] * grid[1] + int(self.config.class_token)]


class NarrowTable(_Resampled):
    """The resampled table is rounded to bfloat16 in every model."""

    def resample(self, picture: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().resample(picture, grid).bfloat16()


class OneLongRow(_Resampled):
    """The table is resampled as one row of cells."""

    def resample(self, picture: Tensor, grid: tuple[int, int]) -> Tensor:
        cells = grid[0] * grid[1]
        row = F.interpolate(picture.flatten(2), size=cells, mode="linear")
        return row.unflatten(2, grid)


class Transposed(Tower):
    """Rows and columns of the table are swapped."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        table, first = super().positions(grid[::-1]), int(self.config.class_token)
        cells = table[first:].unflatten(0, grid[::-1]).transpose(0, 1).flatten(0, 1)
        return torch.cat([table[:first], cells])


class ShiftedByOne(Tower):
    """Each cell has the position of the one before it."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        return super().positions(grid).roll(1, dims=0)


class NotAdded(Tower):
    """No positions."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        return torch.zeros_like(super().positions(grid))


class AddedTwice(Tower):
    """Positions are added twice."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        return super().positions(grid) * 2


class NormBeforePositions(PerceptionTower):
    """The first norm stands before the positions are added."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        if self.config.class_token:
            class_token = self.weights["vision_model.class_embedding"]
            tokens = torch.cat([class_token.expand(len(tokens), 1, -1), tokens], dim=1)
        return self.norm("vision_model.ln_pre", tokens) + self.positions(grid)


_fault = partial(tower_fault, kind="position table", clause="EN-03")

FAULTS = (
    _fault(Bilinear, "positions: bilinear for bicubic"),
    _fault(Bicubic, "positions: bicubic for bilinear"),
    _fault(NotAntialiased, "positions: not antialiased"),
    _fault(Antialiased, "positions: antialiased"),
    _fault(CornersAligned, "positions: corners aligned"),
    _fault(Nearest, "positions: nearest"),
    _fault(ScaledByFactor, "positions: resampled by a factor"),
    _fault(Cropped, "positions: cropped"),
    _fault(FirstRows, "positions: the first entries"),
    _fault(NarrowTable, "positions: resampled in bfloat16", dtypes=PRECISE),
    _fault(OneLongRow, "positions: resampled as one row"),
    _fault(Transposed, "positions: transposed"),
    _fault(ShiftedByOne, "positions: shifted by one"),
    _fault(NotAdded, "positions: not added"),
    _fault(AddedTwice, "positions: added twice"),
    _fault(NormBeforePositions, "positions: added after the first norm"),
)
