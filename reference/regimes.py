"""Weights as an instrument: regimes under which a chosen part of the encoder decides the result.

The whole-encoder regimes move every part. The isolating regimes start from `glass`, an encoder
that is transparent between patch embedding and downsamplers (every branch is zero, norms and layer
scales outside the branches are one, no positions, class tokens are zero), and wake one part, in the
first block only: the blocks after it stay dead. They work on configurations with the published
options, so that code with no others can be measured.
"""

from __future__ import annotations

from collections.abc import Callable

from reference.config import EncoderConfig
from reference.instrument import CLASS_TOKENS, POSITIONS, Instrument, Weights
from reference.stream import bell
from reference.weights import balanced_weights


def init_weights(config: EncoderConfig, seed: int, *, regime: str = "balanced") -> Weights:
    """Draw every vision tensor of an encoder, float32, exact in bfloat16 and float16.

    Args:
        config: gives the names and shapes.
        seed: any int; the same seed gives the same tensors on every machine.
        regime: one of `REGIMES`.

    Raises:
        ValueError: there is no such regime.
    """
    if regime not in REGIMES:
        raise ValueError(f"regime {regime!r} is none of {sorted(REGIMES)}")
    weights = balanced_weights(config, seed)
    REGIMES[regime](Instrument(config, seed, weights))
    return weights


# A power of two near sqrt(eps): squares of such values are as large as the norms' epsilon.
_NEAR_STEP3_EPS = 2.0**-10
_NEAR_PERCEPTION_EPS = 2.0**-8

_LN_PRE = ("vision_model.ln_pre.weight", "vision_model.ln_pre.bias")

_THOUSAND = 2.0**10
_EIGHT = 2.0**3

# quick_gelu and gelu are the identity, to float64's last bit, well above this input.
_LINEAR_BIAS = 32.0


def _balanced(instrument: Instrument) -> None:
    """Every part moves the result."""


def _strong_positions(instrument: Instrument) -> None:
    """As balanced, with positions that outweigh the picture."""
    instrument.scale(8.0, *POSITIONS)


def _tiny_variance(instrument: Instrument) -> None:
    """As balanced, with variances before the norms as small as their epsilon."""
    if not instrument.step3:
        instrument.scale(_NEAR_PERCEPTION_EPS, f"{instrument.tokens}.weight", *POSITIONS)
        instrument.scale(_NEAR_PERCEPTION_EPS, *_LN_PRE)
        return
    for layer in range(instrument.config.layers):
        for role in ("out", "fc2"):
            instrument.scale(_NEAR_STEP3_EPS, *instrument.part(layer, role))


def _large(instrument: Instrument) -> None:
    """As balanced, with a residual stream of some thousands (EN-12).

    In `step3` queries, keys and the MLP read that stream as it is, so they are made small.
    """
    if instrument.config.ln_pre:
        instrument.scale(_THOUSAND, *_LN_PRE)
    else:
        instrument.scale(_THOUSAND, f"{instrument.tokens}.weight", f"{instrument.tokens}.bias")
        instrument.scale(_THOUSAND, *POSITIONS, *CLASS_TOKENS)
    if instrument.step3:
        for layer in range(instrument.config.layers):
            instrument.scale(2.0**-8, instrument.part(layer, "qkv")[0])
            instrument.scale(2.0**-8, instrument.part(layer, "fc1")[0])


def _large_branches(instrument: Instrument) -> None:
    """As balanced, with scores and activations of some thousands inside the blocks (EN-12).

    Queries, keys and the MLP's inner values are large, the results of both branches are not.
    """
    width = instrument.config.width
    for layer in range(instrument.config.layers):
        for name in instrument.part(layer, "qkv"):
            fused = instrument.weights[name].clone()
            fused[: 2 * width] *= _EIGHT
            instrument.weights[name] = fused
        instrument.scale(_THOUSAND, *instrument.part(layer, "fc1"))
        instrument.scale(1 / _THOUSAND, instrument.part(layer, "fc2")[0])


def _projector(instrument: Instrument) -> None:
    """EN-11: the projector reads a constant, so only it decides the rows."""
    instrument.glass()
    first, second = _downsamplers(instrument)
    instrument.fill(0.0, f"{first}.weight", f"{first}.bias", f"{second}.weight")


def _downsamplers(instrument: Instrument) -> tuple[str, str]:
    if instrument.step3:
        return "vit_downsampler", "vit_downsampler2"
    return "vision_model.vit_downsampler1", "vision_model.vit_downsampler2"


def _equal_cells(instrument: Instrument) -> None:
    """EN-10: equal tokens through random downsamplers; padding shows at the borders.

    The first norm gives that token too, whatever it makes of its input.
    """
    instrument.glass()
    vector = instrument.equal_tokens()
    instrument.class_tokens(vector)
    weight, bias = _LN_PRE
    if weight in instrument.weights:
        instrument.fill(0.0, weight)
        instrument.weights[bias] = vector


def _patch_embedding(instrument: Instrument) -> None:
    """EN-02: nothing but patch embedding, downsamplers and projector."""
    instrument.glass()


def _positions(instrument: Instrument) -> None:
    """EN-03: the picture is invisible, the position table is all there is."""
    before = instrument.glass()
    instrument.fill(0.0, f"{instrument.tokens}.weight", f"{instrument.tokens}.bias")
    for name in POSITIONS:
        if name in before:
            instrument.weights[name] = before[name] * 2


def _norms(instrument: Instrument) -> None:
    """EN-05: one block whose attention is a constant, or nothing, and whose MLP is linear."""
    _both_branches(instrument)
    _without_attention(instrument)


def _tiny_norms(instrument: Instrument) -> None:
    """EN-05: as norms, with variances near epsilon before them."""
    _tiny_branches(instrument)
    _without_attention(instrument)


def _without_attention(instrument: Instrument) -> None:
    """Leave of attention its last bias, which `step3` still norms, and in others nothing."""
    weight, bias = instrument.part(0, "out")
    instrument.fill(0.0, weight)
    if not instrument.step3:
        instrument.fill(0.0, bias)


def _both_branches(instrument: Instrument) -> None:
    """EN-05: one block whose attention averages equal tokens and whose MLP is linear."""
    before = instrument.glass()
    instrument.class_tokens(instrument.equal_tokens())
    instrument.wake(before, "out", "fc2", "norm1", "norm2")
    for name in _LN_PRE:
        if name in before:
            instrument.weights[name] = before[name]
    instrument.uniform_attention()
    instrument.fill(_LINEAR_BIAS, instrument.part(0, "fc1")[1])


def _norms_apart(instrument: Instrument) -> None:
    """EN-05: as norms, without attention, for a picture in which one token is unlike the others."""
    before = instrument.glass()
    instrument.equal_tokens()
    instrument.wake(before, "fc2", "norm2")
    for name in _LN_PRE:
        if name in before:
            instrument.weights[name] = before[name]
    instrument.fill(_LINEAR_BIAS, instrument.part(0, "fc1")[1])


def _tiny_branches(instrument: Instrument) -> None:
    """EN-05: as both branches, with variances near epsilon before all norms."""
    _both_branches(instrument)
    if instrument.step3:
        instrument.scale(_NEAR_STEP3_EPS, *instrument.part(0, "out"))
        weight, bias = instrument.part(0, "fc2")
        instrument.scale(_NEAR_STEP3_EPS / _LINEAR_BIAS, weight)
        instrument.scale(_NEAR_STEP3_EPS, bias)
        return
    instrument.scale(_NEAR_PERCEPTION_EPS, f"{instrument.tokens}.weight", *CLASS_TOKENS)
    instrument.scale(_NEAR_PERCEPTION_EPS, *_LN_PRE, *instrument.part(0, "out"))


def _layer_scale(instrument: Instrument) -> None:
    """EN-06: as both branches, with unit norms, large tokens and unequal gammas."""
    _both_branches(instrument)
    instrument.scale(64.0, f"{instrument.tokens}.weight", *CLASS_TOKENS)
    instrument.unit("vision_model.ln_pre")
    for role in ("norm1", "norm2"):
        instrument.unit_norm(0, role)
    for name, deviation in zip(instrument.gammas(0), (1.0, 0.3), strict=True):
        if name in instrument.weights:
            shape = instrument.weights[name].shape
            instrument.weights[name] = bell(instrument.seed, name, shape, deviation)


def _class_drop(instrument: Instrument) -> None:
    """EN-04: equal cells and a class token unlike them, no branch: which tokens are dropped."""
    instrument.glass()
    vector = instrument.equal_tokens()
    instrument.class_tokens(bell(instrument.seed, "class token", vector.shape, 2.0))


def _class_copies(instrument: Instrument) -> None:
    """EN-04: an average over all tokens, of which only class tokens have a value.

    On a black picture every other token is zero: its query is zero, however it turns, and so are
    its scores, whatever their scale. Queries, keys and values have one weight, and all heads.
    """
    before = instrument.glass()
    vector = instrument.equal_tokens()
    instrument.class_tokens(bell(instrument.seed, "class token", vector.shape, 2.0))
    instrument.wake(before, "out")
    instrument.unit_norm(0, "norm1")
    weight, bias = instrument.part(0, "qkv")
    rows = instrument.weights[weight]
    instrument.weights[weight] = rows[-1:].expand_as(rows).clone()
    instrument.fill(0.0, bias)


def _class_position(instrument: Instrument) -> None:
    """EN-04: as class-copies, with a position of the class token's own."""
    _class_copies(instrument)
    for name in POSITIONS:
        if name in instrument.weights:
            table = instrument.weights[name].clone()
            table[0] = bell(instrument.seed, "class position", table.shape[1:], 2.0)
            instrument.weights[name] = table


def _class_rotary(instrument: Instrument) -> None:
    """EN-04: as rotary, with a class token that takes part."""
    _rotary(instrument)
    shape = instrument.weights[f"{instrument.tokens}.weight"].shape[:1]
    instrument.class_tokens(bell(instrument.seed, "class token", shape, 2.0))


def _attention(instrument: Instrument) -> None:
    """EN-08: one block of attention, blind to rotary.

    Without biases a black cell has no query, no key and no value. In a picture that is black but
    for its first cell, which no rotary turns, the only score that is not zero is that of this
    cell with itself, and the only value is its own.
    """
    before = instrument.glass()
    instrument.wake(before, "out")
    instrument.unit_norm(0, "norm1")
    instrument.scale(32.0, instrument.part(0, "out")[0])
    instrument.fill(0.0, f"{instrument.tokens}.bias", instrument.part(0, "qkv")[1])
    instrument.scale_queries(2.0)


def _rotary(instrument: Instrument) -> None:
    """EN-07: peaked attention in all channels."""
    before = instrument.glass()
    instrument.wake(before, "out")
    instrument.unit_norm(0, "norm1")
    instrument.scale(32.0, instrument.part(0, "out")[0])
    instrument.scale_queries(2.0)


def _rotary_values(instrument: Instrument) -> None:
    """EN-07: an average of equal values, which changes if values turn."""
    before = instrument.glass()
    instrument.class_tokens(instrument.equal_tokens())
    instrument.wake(before, "out")
    instrument.unit_norm(0, "norm1")
    instrument.uniform_attention()


def _activation(instrument: Instrument) -> None:
    """EN-09: one MLP and no attention."""
    before = instrument.glass()
    instrument.wake(before, "fc2")
    instrument.unit_norm(0, "norm2")
    instrument.scale(32.0, instrument.part(0, "fc2")[0])


REGIMES: dict[str, Callable[[Instrument], None]] = {
    "balanced": _balanced,
    "strong-positions": _strong_positions,
    "tiny-variance": _tiny_variance,
    "large": _large,
    "large-branches": _large_branches,
    "projector": _projector,
    "equal-cells": _equal_cells,
    "patch-embedding": _patch_embedding,
    "positions": _positions,
    "norms": _norms,
    "norms-apart": _norms_apart,
    "both-branches": _both_branches,
    "tiny-branches": _tiny_branches,
    "tiny-norms": _tiny_norms,
    "layer-scale": _layer_scale,
    "class-drop": _class_drop,
    "class-copies": _class_copies,
    "class-position": _class_position,
    "class-rotary": _class_rotary,
    "attention": _attention,
    "rotary": _rotary,
    "rotary-values": _rotary_values,
    "activation": _activation,
}
