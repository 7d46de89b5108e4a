"""What the reference refuses, one class per cause; every one is a ValueError."""

from __future__ import annotations

MISSING_COUNTS = "Step3-VL image item is missing num_patches."
MISSING_PATCHES = "Step3-VL image item has num_patches > 0 but no patch_pixel_values."


class ItemError(ValueError):
    """An image item is not well-formed."""


class MissingCountsError(ItemError):
    """`num_patches` is absent or None (NP-01, NP-02)."""

    def __init__(self) -> None:
        super().__init__(MISSING_COUNTS)


class MissingPatchesError(ItemError):
    """A count is positive but there are no patch rows (PP-02)."""

    def __init__(self) -> None:
        super().__init__(MISSING_PATCHES)


class CountTypeError(ItemError):
    """`num_patches` holds something that is not an integer (NP-09)."""


class NegativeCountError(ItemError):
    """A count is negative (MA-03)."""


class PatchRowsError(ItemError):
    """The counts do not add up to the patch rows (MA-01, MA-02)."""


class ImageCountError(ItemError):
    """There are not as many counts as thumbnails (MA-04, MA-05)."""


class PixelsError(ItemError):
    """Pixels of the wrong type, rank, channel count or size (MA-08)."""


class IntegerPixelsError(PixelsError):
    """Pixels that are not floating point, so not normalised (MA-09)."""


class WeightsError(ValueError):
    """Weights do not fit the configuration (WE-02)."""


class MissingWeightsError(WeightsError):
    """Vision tensors are missing; the message names them."""


class UnknownWeightsError(WeightsError):
    """Vision tensors that the configuration has no place for; the message names them."""


class WeightShapeError(WeightsError):
    """Vision tensors of the wrong shape; the message names them and both shapes."""


class CheckpointError(ValueError):
    """A checkpoint directory cannot be read."""
