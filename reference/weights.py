"""The vision tensors of an encoder: their names, their shapes, and values drawn from a seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from torch import Tensor

from reference.config import EncoderConfig
from reference.errors import MissingWeightsError, UnknownWeightsError, WeightShapeError
from reference.stream import bell, spread

VISION_PREFIXES = ("vision_model.", "vit_downsampler", "vit_large_projector.")


def weight_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    """The shape of every vision tensor under its published name."""
    return _step3_shapes(config) if config.family == "step3" else _perception_shapes(config)


def require_weights(config: EncoderConfig, weights: Mapping[str, Tensor]) -> None:
    """Check that weights fit a configuration: all names, no others, the right shapes.

    Raises:
        MissingWeightsError, UnknownWeightsError, WeightShapeError: the message names the tensors.
    """
    shapes = weight_shapes(config)
    if missing := sorted(shapes.keys() - weights.keys()):
        raise MissingWeightsError(f"{config.family} lacks the tensors {_few(missing)}")
    if unknown := sorted(weights.keys() - shapes.keys()):
        raise UnknownWeightsError(f"{config.family} has no place for the tensors {_few(unknown)}")
    wrong = [
        f"{name} {tuple(weights[name].shape)} (expected {shape})"
        for name, shape in shapes.items()
        if tuple(weights[name].shape) != shape
    ]
    if wrong:
        raise WeightShapeError(f"{config.family} has tensors of the wrong shape: {_few(wrong)}")


def balanced_weights(config: EncoderConfig, seed: int) -> dict[str, Tensor]:
    """Weights under which every part of the encoder moves the result.

    Matrices are scaled by their fan-in, biases are not zero, norm weights and layer scales are
    unequal: a default initialisation, with zero biases and unit norms, hides faults.
    """
    return {name: _draw(seed, name, shape) for name, shape in weight_shapes(config).items()}


def _draw(seed: int, name: str, shape: tuple[int, ...]) -> Tensor:
    if name.endswith(".gamma"):
        return bell(seed, name, shape, 0.5)
    if _is_norm(name) and name.endswith(".weight"):
        return spread(seed, name, shape, 32, 96)
    if name.endswith(("position_embedding.weight", "positional_embedding", "class_embedding")):
        return bell(seed, name, shape, 0.5)
    if len(shape) == 1:
        return bell(seed, name, shape, 0.25)
    return bell(seed, name, shape, math.prod(shape[1:]) ** -0.5)


def _is_norm(name: str) -> bool:
    return ".ln_" in name or ".layer_norm" in name


def _few(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _step3_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    width, patch, channels = config.width, config.patch_size, config.downsampler_width
    assert channels is not None
    shapes: dict[str, tuple[int, ...]] = {
        "vision_model.embeddings.class_embedding": (1, width),
        "vision_model.embeddings.patch_embedding.weight": (width, 3, patch, patch),
        "vision_model.embeddings.patch_embedding.bias": (width,),
        "vision_model.embeddings.position_embedding.weight": (config.grid**2 + 1, width),
    }
    for layer in range(config.layers):
        name = f"vision_model.transformer.layers.{layer}"
        shapes |= _affine(f"{name}.layer_norm1", width)
        shapes |= _affine(f"{name}.self_attn.qkv_proj", 3 * width, width)
        shapes |= _affine(f"{name}.self_attn.out_proj", width, width)
        shapes |= _affine(f"{name}.layer_norm2", width)
        shapes |= _affine(f"{name}.mlp.fc1", config.mlp_width, width)
        shapes |= _affine(f"{name}.mlp.fc2", width, config.mlp_width)
    shapes |= _affine("vit_downsampler", channels, width, 2, 2)
    shapes |= _affine("vit_downsampler2", 2 * channels, channels, 3, 3)
    return shapes | _projector(config, 2 * channels)


def _perception_shapes(config: EncoderConfig) -> dict[str, tuple[int, ...]]:
    width, patch = config.width, config.patch_size
    shapes: dict[str, tuple[int, ...]] = {"vision_model.conv1.weight": (width, 3, patch, patch)}
    if config.class_token:
        shapes["vision_model.class_embedding"] = (width,)
    if config.positions:
        cells = config.grid**2 + int(config.class_token)
        shapes["vision_model.positional_embedding"] = (cells, width)
    if config.ln_pre:
        shapes |= _affine("vision_model.ln_pre", width)
    for layer in range(config.layers):
        shapes |= _resblock(config, f"vision_model.transformer.resblocks.{layer}")
    if config.ln_post:
        shapes |= _affine("vision_model.ln_post", width)
    shapes |= _affine("vision_model.vit_downsampler1", 2 * width, width, 3, 3)
    shapes |= _affine("vision_model.vit_downsampler2", 4 * width, 2 * width, 3, 3)
    return shapes | _projector(config, 4 * width)


def _resblock(config: EncoderConfig, name: str) -> dict[str, tuple[int, ...]]:
    width = config.width
    shapes = _affine(f"{name}.ln_1", width)
    shapes[f"{name}.attn.in_proj_weight"] = (3 * width, width)
    shapes[f"{name}.attn.in_proj_bias"] = (3 * width,)
    shapes |= _affine(f"{name}.attn.out_proj", width, width)
    shapes |= _affine(f"{name}.ln_2", width)
    shapes |= _affine(f"{name}.mlp.c_fc", config.mlp_width, width)
    shapes |= _affine(f"{name}.mlp.c_proj", width, config.mlp_width)
    if config.layer_scale is not None:
        shapes |= {f"{name}.ls_1.gamma": (width,), f"{name}.ls_2.gamma": (width,)}
    return shapes


def _affine(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _projector(config: EncoderConfig, channels: int) -> dict[str, tuple[int, ...]]:
    shapes = _affine("vit_large_projector", config.text_width, channels)
    if not config.projector_bias:
        del shapes["vit_large_projector.bias"]
    return shapes
