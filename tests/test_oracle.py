"""The oracle: what it knows of a picture is the picture's own."""

from __future__ import annotations

import pytest
import torch

from conformance.oracle import Oracle
from reference import FAMILIES, EncoderConfig
from strategies import Weights, paint

CPU = torch.device("cpu")


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_company_and_history_change_no_bit(family: str, whole: bool) -> None:
    """Rows and units are the same alone, among others, and after others: runs are reproducible."""
    config = EncoderConfig.tiny(family)
    weights = Weights.drawn(config, 1)
    pictures = [paint("normal", seed, "picture", (3, 8, 8)) for seed in range(5)]
    together = Oracle(torch.float32, CPU).truth(config, weights, pictures, whole=whole)
    later = Oracle(torch.float32, CPU)
    for picture in reversed(pictures):
        later.truth(config, weights, [picture], whole=not whole)
    again = later.truth(config, weights, pictures, whole=whole)
    assert torch.equal(together.rows, again.rows)
    assert torch.equal(together.unit, again.unit)
