"""Configurations: few and small, so that built encoders are reused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from reference import FAMILIES, EncoderConfig
from strategies.choice import among

Variant = Mapping[str, Any]

SMALL: Variant = {}
# A patch size of 3 could be taken for the three channels; no checkpoint has it.
ODD: Variant = {
    "image_size": 25,
    "patch_size": 5,
    "width": 24,
    "mlp_width": 36,
    "layers": 3,
    "projector_bias": True,
    "downsampler_stride": 1,
}
HEADS: Variant = {"image_size": 12, "width": 64, "heads": 4, "mlp_width": 96, "text_width": 20}
WIDE_HEADS: Variant = {"width": 192, "heads": 2, "mlp_width": 96}

# Head dims 8, 12, 16 and 96; grids 4, 5 and 6; two layers and three; both strides of `step3`.
VARIANTS: tuple[Variant, ...] = (SMALL, ODD, HEADS, WIDE_HEADS)


def configs(
    *, family: str | None = None, variants: Sequence[Variant] = VARIANTS
) -> st.SearchStrategy[EncoderConfig]:
    """Tiny configurations.

    Args:
        family: of all of them; None draws it.
        variants: changes to `EncoderConfig.tiny`, in the order in which to shrink towards them.
            Fields that a family leaves no choice in are passed over for that family.
    """
    families = FAMILIES if family is None else (family,)
    found = [tiny(name, variant) for name in families for variant in variants]
    return among(tuple(dict.fromkeys(found)))


def tiny(family: str, variant: Variant) -> EncoderConfig:
    """A tiny configuration with a variant's changes, as far as the family has them."""
    fixed = _FIXED_IN_STEP3 if family == "step3" else _FIXED_IN_PERCEPTION
    changes = {name: value for name, value in variant.items() if name not in fixed}
    return EncoderConfig.tiny(family, **changes)


_FIXED_IN_STEP3 = {"class_token", "ln_pre", "ln_post", "layer_scale", "positions", "rotary"}
_FIXED_IN_PERCEPTION = {"downsampler_stride", "downsampler_width"}
