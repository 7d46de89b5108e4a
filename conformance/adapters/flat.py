"""The flat form of a request: one tensor of thumbnails, one of patches, one list of counts.

Engines with the interface `batch` take it. Joining is all that happens to the caller's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from conformance.protocol import Item


def flat_request(items: Sequence[Item]) -> tuple[Any, Any, Any]:
    """A request as thumbnails, patches and counts.

    One item goes through as it is. Several are joined, since the flat interface has room for one
    tensor of thumbnails, one of patches and one list of counts; patches are None where no item
    has any.

    Raises:
        RuntimeError: torch's, where tensors of several items do not join.
    """
    data = [item.model_specific_data for item in items]
    if len(items) == 1:
        return items[0].feature, data[0].get("patch_pixel_values"), data[0].get("num_patches")
    present = [patches for each in data if (patches := each.get("patch_pixel_values")) is not None]
    pixels = torch.cat([item.feature for item in items])
    patches = torch.cat(present) if present else None
    return pixels, patches, _joined_counts([each.get("num_patches") for each in data])


def _joined_counts(counts: Sequence[Any]) -> list[Any] | None:
    """The counts of several items as one list, each count in the form it came in.

    None where no item has counts: then the argument is left out, as for one item. An item without
    counts among others has no form in this interface, and leaving its images out would shift the
    others' counts; its None stays in the list, for the engine to judge.
    """
    if all(count is None for count in counts):
        return None
    return [value for count in counts for value in _values(count)]


def _values(count: Any) -> Sequence[Any]:
    if isinstance(count, (list, tuple)):
        return count
    if hasattr(count, "reshape"):  # a tensor or an array, row-major
        return list(count.reshape(-1))
    return [count]
