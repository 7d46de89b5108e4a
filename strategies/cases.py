"""Cases: a configuration, weights and items, drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from hypothesis import strategies as st

from strategies.case import Case, Placement, Weights
from strategies.choice import among, seeds
from strategies.configs import VARIANTS, Variant, configs
from strategies.items import items

WEIGHT_SEEDS = 4


@st.composite
def cases(
    draw: st.DrawFn,
    /,
    *,
    family: str | None = None,
    dtype: torch.dtype = torch.float32,
    variants: Sequence[Variant] = VARIANTS,
    regimes: Sequence[str] = ("balanced",),
    placement: Placement = Placement(),  # noqa: B008
    pixel_dtypes: Sequence[torch.dtype] | None = None,
    **of_items: Any,
) -> Case:
    """Well-formed cases; failures shrink to one item with one image and few patches.

    Args:
        draw: given by Hypothesis.
        family: of the configuration; None draws it.
        dtype: the model's.
        variants: of the tiny configuration, see `strategies.configs`.
        regimes: of the weights, see `reference.REGIMES`.
        placement: where the items' tensors lie.
        pixel_dtypes: among which to draw the pixels' dtype; by default the model's.
        **of_items: passed to `strategies.items`.
    """
    config = draw(configs(family=family, variants=variants))
    regime = draw(among(tuple(regimes)))
    weights = Weights.drawn(config, draw(seeds(WEIGHT_SEEDS - 1)), regime)
    pixel_dtype = draw(among(tuple(pixel_dtypes or (dtype,))))
    drawn = draw(items(config=config, dtype=pixel_dtype, **of_items))
    return Case(config, weights, drawn, dtype, placement)
