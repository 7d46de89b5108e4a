"""The reference's arithmetic: equal, in float64, to an independent second implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from reference import FAMILIES, REGIMES, EncoderConfig, ImageItem, ReferenceEncoder, init_weights
from strategies import paint
from tests.second import SecondEncoder

DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# Rows and columns of cells; the native grid of most configurations here is 4 x 4.
GRIDS = [(4, 4), (3, 3), (2, 2), (2, 4), (5, 3), (7, 6), (9, 9)]

STEP3 = {
    "as published": {},
    "stride 1": {"downsampler_stride": 1},
    "stride 1, native grid of 5": {"downsampler_stride": 1, "image_size": 10},
    "patches of 3 pixels": {"patch_size": 3, "image_size": 13},
    "projector bias": {"projector_bias": True},
    "gelu": {"hidden_act": "gelu"},
    "head dim 12": {"width": 24, "heads": 2},
    "head dim 16": {"width": 64, "heads": 4},
    "head dim 96": {"width": 192, "heads": 2},
    "one layer": {"layers": 1},
    "three layers": {"layers": 3},
}
PERCEPTION = {
    "as published": {},
    "native grid of 5": {"image_size": 10},
    "patches of 3 pixels": {"patch_size": 3, "image_size": 13},
    "projector bias": {"projector_bias": True},
    "gelu": {"hidden_act": "gelu"},
    "head dim 12": {"width": 24, "heads": 2},
    "head dim 16": {"width": 64, "heads": 4},
    "head dim 96": {"width": 192, "heads": 2},
    "class token": {"class_token": True},
    "class token, native grid of 5": {"class_token": True, "image_size": 10},
    "class token, last norm": {"class_token": True, "ln_post": True},
    "no first norm": {"ln_pre": False},
    "last norm": {"ln_post": True},
    "no layer scale": {"layer_scale": None},
    "no positions": {"positions": False},
    "class token, no positions": {"class_token": True, "positions": False},
    "no rotary": {"rotary": False},
    "no rotary, no positions": {"rotary": False, "positions": False},
    "head dim 6, no rotary": {"rotary": False, "width": 12},
    "another rotary base": {"rotary_base": 100.0},
    "another epsilon": {"norm_eps": 0.1},
    "three layers": {"layers": 3},
}
CONFIGS = [
    pytest.param(EncoderConfig.tiny(family, **changes), id=f"{family}, {name}")
    for family, options in (("step3", STEP3), ("step3-vl-10b", PERCEPTION))
    for name, changes in options.items()
]


def pictures(config: EncoderConfig, grid: tuple[int, int], count: int = 2) -> Tensor:
    """Pictures of a grid of cells, `(count, 3, H, W)`, in float64."""
    side = config.patch_size
    shape = (3, grid[0] * side, grid[1] * side)
    return torch.stack([paint("normal", 5, f"{index}", shape) for index in range(count)]).double()


def encoders(config: EncoderConfig, regime: str = "balanced") -> tuple[Any, Any]:
    """The reference and the second implementation, both in float64."""
    weights = init_weights(config, 3, regime=regime)
    return (
        ReferenceEncoder(config, weights, dtype=torch.float64),
        SecondEncoder(config, weights, dtype=torch.float64),
    )


def assert_equal(actual: Tensor, expected: Tensor, relative: float = 1e-12) -> None:
    """Equal to a fraction of the largest value."""
    assert actual.shape == expected.shape
    assert bool(expected.any())
    assert (actual - expected).abs().max() <= relative * expected.abs().max()


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: f"{grid[0]}x{grid[1]}")
@pytest.mark.parametrize("config", CONFIGS)
def test_every_option_on_every_kind_of_grid(config: EncoderConfig, grid: tuple[int, int]) -> None:
    """Each option equals the second implementation on native, odd, oblong and larger grids."""
    reference, second = encoders(config)
    pixels = pictures(config, grid)
    assert_equal(reference.encode(pixels), second.encode(pixels))


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_regime(family: str, regime: str) -> None:
    """Under every regime of weights, on and off the native grid, both implementations agree."""
    config = EncoderConfig.tiny(family, image_size=10, projector_bias=True)
    reference, second = encoders(config, regime)
    for grid in ((5, 5), (4, 4)):
        pixels = pictures(config, grid)
        assert_equal(reference.encode(pixels), second.encode(pixels))


@pytest.mark.parametrize("regime", ["class-drop", "class-copies", "norms", "rotary", "large"])
def test_regimes_with_a_class_token(regime: str) -> None:
    """Both implementations agree on the regimes' weights where there is a class token."""
    config = EncoderConfig.tiny("step3p7", class_token=True)
    reference, second = encoders(config, regime)
    pixels = pictures(config, (3, 3))
    assert_equal(reference.encode(pixels), second.encode(pixels))


@pytest.mark.parametrize("family", FAMILIES)
def test_items_are_merged_as_the_second_implementation_does(family: str) -> None:
    """Several items, with and without patches, give the rows of the second implementation."""
    config = EncoderConfig.tiny(family)
    reference, second = encoders(config)
    patches = pictures(config, (3, 3), 4)
    items = [
        ImageItem(
            pictures(config, (4, 4), 3),
            {"num_patches": [1, 0, 2], "patch_pixel_values": patches[:3]},
        ),
        ImageItem(pictures(config, (5, 2), 1), {"num_patches": 0}),
        ImageItem(
            pictures(config, (4, 4), 1), {"num_patches": 1, "patch_pixel_values": patches[3:]}
        ),
    ]
    assert_equal(reference.get_image_feature(items), second.get_image_feature(items))


def test_the_two_perception_families_compute_the_same() -> None:
    """`step3p7` is `step3-vl-10b` by another name: the same weights give the same bits."""
    one, other = (EncoderConfig.tiny(family) for family in FAMILIES[1:])
    weights = init_weights(one, 0)
    pixels = pictures(one, (4, 4))
    results = [ReferenceEncoder(config, weights).encode(pixels) for config in (one, other)]
    assert torch.equal(*results)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("grid", [(4, 4), (3, 3), (5, 6)], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_other_dtypes_are_near_float64(
    family: str, grid: tuple[int, int], dtype: torch.dtype
) -> None:
    """In every other dtype the result is that of float64 but for rounding."""
    config = EncoderConfig.tiny(family, projector_bias=True)
    weights = init_weights(config, 1)
    pixels = pictures(config, grid)
    exact = ReferenceEncoder(config, weights, dtype=torch.float64).encode(pixels)
    rounded = ReferenceEncoder(config, weights, dtype=dtype).encode(pixels)
    assert rounded.dtype == dtype
    error = (rounded.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt()
    assert error < 16 * torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_statistics_of_norms_are_float32(family: str, dtype: torch.dtype) -> None:
    """A norm of large values that only float32 can square is finite and right (EN-05)."""
    config = EncoderConfig.tiny(family)
    weights = init_weights(config, 0)
    encoder = ReferenceEncoder(config, weights, dtype=dtype)
    tower = encoder.towers[family](config, encoder.weights)
    name = next(n for n in weights if n.endswith(("ln_1.weight", "layer_norm1.weight")))
    large = (paint("normal", 0, "large", (3, 4, config.width)) * 2.0**11).to(dtype)
    found = tower.norm(name.removesuffix(".weight"), large)
    doubles = ReferenceEncoder(config, weights, dtype=torch.float64)
    exact = doubles.towers[family](config, doubles.weights)
    wanted = exact.norm(name.removesuffix(".weight"), large.double())
    assert (found.double() - wanted).abs().max() <= torch.finfo(dtype).eps * wanted.abs().max()


def stages(config: EncoderConfig) -> Sequence[str]:
    """The documented names of stages and intermediate values, in order."""
    blocks = [
        name
        for layer in range(config.layers)
        for name in (f"block.{layer}.scores", f"block.{layer}.hidden", f"block.{layer}")
    ]
    end = ["tower", "downsampler.0", "downsampler.1", "projector"]
    return ["patch_embedding", "embeddings", *blocks, *end]


@pytest.mark.parametrize("family", FAMILIES)
def test_probes_see_every_stage_in_order(family: str) -> None:
    """A probe gets each documented stage once, in order, and the last is the result."""
    config = EncoderConfig.tiny(family, layers=3)
    encoder = ReferenceEncoder(config, init_weights(config, 0))
    seen: list[tuple[str, Tensor]] = []
    result = encoder.encode(
        pictures(config, (4, 4)), lambda name, value: seen.append((name, value))
    )
    assert [name for name, _ in seen] == stages(config)
    assert torch.equal(seen[-1][1], result)


@pytest.mark.parametrize("family", FAMILIES)
def test_probing_changes_nothing(family: str) -> None:
    """With a probe the result has the same bits."""
    config = EncoderConfig.tiny(family)
    encoder = ReferenceEncoder(config, init_weights(config, 0))
    pixels = pictures(config, (3, 3))
    assert torch.equal(encoder.encode(pixels, lambda *_: None), encoder.encode(pixels))


def test_scores_are_not_scaled() -> None:
    """The probe `scores` holds q.k as it is before the scale, in `step3` without rotary (EN-12)."""
    config = EncoderConfig.tiny("step3", layers=1)
    weights = init_weights(config, 0)
    seen: dict[str, Tensor] = {}
    encoder = ReferenceEncoder(config, weights, dtype=torch.float64)
    encoder.encode(pictures(config, (4, 4), 1), seen.__setitem__)
    name = "vision_model.transformer.layers.0.self_attn.qkv_proj"
    fused = seen["embeddings"][0] @ weights[f"{name}.weight"].double().T
    fused = fused + weights[f"{name}.bias"].double()
    query, key, _ = fused.chunk(3, dim=1)
    head = slice(0, config.head_dim)
    assert_equal(seen["block.0.scores"][0, 0], query[:, head] @ key[:, head].T)
