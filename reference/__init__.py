"""What is right: the reference encoder, its configuration and its weights.

Knows torch, NumPy and safetensors, and nothing of the rest of this project.
"""

from reference.checkpoint import load_checkpoint
from reference.config import FAMILIES, EncoderConfig
from reference.counts import read_counts
from reference.encoder import ReferenceEncoder
from reference.errors import (
    MISSING_COUNTS,
    MISSING_PATCHES,
    CheckpointError,
    CountTypeError,
    ImageCountError,
    IntegerPixelsError,
    ItemError,
    MissingCountsError,
    MissingPatchesError,
    MissingWeightsError,
    NegativeCountError,
    PatchRowsError,
    PixelsError,
    UnknownWeightsError,
    WeightsError,
    WeightShapeError,
)
from reference.item import ImageItem
from reference.regimes import REGIMES, init_weights
from reference.weights import weight_shapes

__all__ = [
    "FAMILIES",
    "MISSING_COUNTS",
    "MISSING_PATCHES",
    "REGIMES",
    "CheckpointError",
    "CountTypeError",
    "EncoderConfig",
    "ImageCountError",
    "ImageItem",
    "IntegerPixelsError",
    "ItemError",
    "MissingCountsError",
    "MissingPatchesError",
    "MissingWeightsError",
    "NegativeCountError",
    "PatchRowsError",
    "PixelsError",
    "ReferenceEncoder",
    "UnknownWeightsError",
    "WeightShapeError",
    "WeightsError",
    "init_weights",
    "load_checkpoint",
    "read_counts",
    "weight_shapes",
]
