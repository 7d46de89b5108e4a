"""One entry of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class ImageItem:
    """What a serving engine hands to an encoder for some images of a request.

    Attributes:
        feature: the thumbnails of k images, `(k, 3, H, W)`, normalised.
        model_specific_data: `num_patches` (one count per image), `patch_pixel_values`
            (`(r, 3, h, w)`, the patches of all k images in order) and anything else.
    """

    feature: torch.Tensor
    model_specific_data: dict[str, Any] = field(default_factory=dict)
