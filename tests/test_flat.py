"""How adapters for flat interfaces join a request."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from conformance.adapters.flat import flat_request
from reference import ImageItem


def item(images: int, **data: Any) -> ImageItem:
    """An item of some images whose pixels are their number."""
    return ImageItem(torch.full((images, 3, 2, 2), float(images)), data)


@pytest.mark.parametrize("counts", [[1], 1, torch.tensor(1), torch.tensor([[1]]), "1", None])
@pytest.mark.parametrize("patches", [torch.zeros(1, 3, 2, 2), torch.zeros(0, 3, 2, 2), [], None])
def test_one_item_goes_through_as_it_is(counts: Any, patches: Any) -> None:
    """No tensor and no form of the counts is replaced."""
    one = item(1, num_patches=counts, patch_pixel_values=patches)
    assert flat_request([one]) == (one.feature, patches, counts)


def test_nothing_is_made_up_for_one_item() -> None:
    """What is absent is None."""
    one = item(1)
    assert flat_request([one]) == (one.feature, None, None)


def test_several_items_are_joined_in_order() -> None:
    """Thumbnails and patches by rows, counts in one list."""
    patches = torch.ones(2, 3, 2, 2)
    several = [
        item(1, num_patches=torch.tensor([2]), patch_pixel_values=patches),
        item(2, num_patches=[0, 0]),
        item(1, num_patches=0, patch_pixel_values=None),
    ]
    pixels, joined, counts = flat_request(several)
    assert pixels[:, 0, 0, 0].tolist() == [1, 2, 2, 1]
    assert torch.equal(joined, patches)
    assert [int(count) for count in counts] == [2, 0, 0, 0]


def test_an_item_without_counts_keeps_its_place() -> None:
    """The engine sees that one is missing; only where all are is the argument left out."""
    several = [item(1, num_patches=[1]), item(1)]
    assert flat_request(several)[2] == [1, None]
    assert flat_request([item(1), item(1)])[2] is None
