"""The reference encoder: items in, merged rows out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from reference.config import EncoderConfig
from reference.counts import read_counts
from reference.errors import (
    ImageCountError,
    IntegerPixelsError,
    MissingPatchesError,
    PatchRowsError,
    PixelsError,
)
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Probe, Tower, no_probe
from reference.weights import require_weights

_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


class ReferenceEncoder:
    """A Step3-VL vision encoder that follows the contract and refuses malformed input.

    Args:
        config: what to compute.
        weights: every vision tensor under its published name.
        device: where to compute.
        dtype: float64, float32, bfloat16 or float16.

    Raises:
        WeightsError: a tensor is missing, unknown or of the wrong shape.
        ValueError: another dtype.
    """

    towers: Mapping[str, type[Tower]] = {
        "step3": Step3Tower,
        "step3-vl-10b": PerceptionTower,
        "step3p7": PerceptionTower,
    }

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"dtype is {dtype}; it must be one of {_DTYPES}")
        require_weights(config, weights)
        self.config = config
        self.device = torch.device(device)
        self.dtype = dtype
        self.weights = {
            name: tensor.detach().to(self.device, dtype, copy=True)
            for name, tensor in weights.items()
        }

    @torch.no_grad()
    def get_image_feature(self, items: Sequence[Any]) -> Tensor:
        """Encode items and merge their rows.

        Args:
            items: objects with `.feature`, thumbnails `(k, 3, H, W)`, and
                `.model_specific_data`, a dict with `num_patches` and `patch_pixel_values`
                `(r, 3, h, w)`.

        Returns:
            `(rows, D)` in the encoder's dtype on its device: item by item, image by image, the
            image's patches in order and then its thumbnail (LA-02, LA-03). No items give
            `(0, D)`.

        Raises:
            ItemError: an item is malformed; the subclass says how.
        """
        rows = [row for item in items for row in self.item_rows(item)]
        empty = torch.zeros(0, self.config.text_width, dtype=self.dtype, device=self.device)
        return torch.cat([empty, *rows])

    def item_rows(self, item: Any) -> list[Tensor]:
        """The rows of each picture of one item, in the order of the result."""
        data = item.model_specific_data
        counts = read_counts(data.get("num_patches"))
        thumbnails = self.pictures("feature", item.feature)
        patches = self.patches(data.get("patch_pixel_values"))
        if sum(counts) > 0 and not patches:
            raise MissingPatchesError
        if len(counts) != len(thumbnails):
            raise ImageCountError(
                f"{len(counts)} counts for {len(thumbnails)} thumbnails; each image needs one"
            )
        if sum(counts) != len(patches):
            raise PatchRowsError(
                f"num_patches {list(counts)} adds up to {sum(counts)}, but patch_pixel_values has "
                f"{len(patches)} rows"
            )
        return self.merge(counts, patches, thumbnails)

    def merge(
        self, counts: Sequence[int], patches: list[Tensor], thumbnails: list[Tensor]
    ) -> list[Tensor]:
        """Image by image: its patches in order, then its thumbnail (LA-02, LA-03)."""
        rows, start = [], 0
        for count, thumbnail in zip(counts, thumbnails, strict=True):
            rows += [*patches[start : start + count], thumbnail]
            start += count
        return rows

    def patches(self, raw: Any) -> list[Tensor]:
        """The rows of each patch; absent, None, an empty list and zero rows are none (PP-01)."""
        if raw is None or (isinstance(raw, (list, tuple)) and not raw):
            return []
        if isinstance(raw, Tensor) and raw.dim() > 0 and raw.shape[0] == 0:
            return []
        return self.pictures("patch_pixel_values", raw)

    def pictures(self, name: str, pixels: Any) -> list[Tensor]:
        """The rows of each picture of a tensor of pixels, `(rows, D)` each.

        Each picture is encoded alone, so its rows are bit-equal whatever shares the call (BA-05).
        """
        self.require_pixels(name, pixels)
        return [self.encode(picture)[0] for picture in pixels.split(1)] if len(pixels) else []

    def encode(self, pixels: Tensor, probe: Probe = no_probe) -> Tensor:
        """Encode pictures of one size: `(n, 3, H, W)` to `(n, rows, D)`.

        Args:
            pixels: normalised, any floating dtype, any device.
            probe: called with the name and the value of each stage (see `reference.tower`).
        """
        tower = self.towers[self.config.family](self.config, self.weights, probe)
        with torch.no_grad():
            # A copy, since kernels may round otherwise on a slice that is not aligned.
            return tower(pixels.detach().to(self.device, self.dtype, copy=True))

    def require_pixels(self, name: str, pixels: Any) -> None:
        """Check the type, rank, channels and size of pixels (MA-08, MA-09).

        Raises:
            PixelsError: the message names the value and what it must be.
        """
        if not isinstance(pixels, Tensor):
            raise PixelsError(f"{name} is a {type(pixels).__name__}; it must be a tensor")
        shape = tuple(pixels.shape)
        if pixels.dim() != 4 or shape[1] != 3:
            raise PixelsError(f"{name} has shape {shape}; it must be (n, 3, height, width)")
        if not pixels.dtype.is_floating_point:
            raise IntegerPixelsError(f"{name} is {pixels.dtype}; normalise it to floating point")
        least = self.config.patch_size * (2 if self.config.family == "step3" else 1)
        if min(shape[2:]) < least:
            raise PixelsError(f"{name} is {shape[2]}x{shape[3]} pixels; each side needs {least}")
