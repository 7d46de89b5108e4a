"""Weights and pixels from seeds: stable, exact in low precision, and checked against shapes."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch
from torch import Tensor

from reference import (
    FAMILIES,
    REGIMES,
    EncoderConfig,
    MissingWeightsError,
    ReferenceEncoder,
    UnknownWeightsError,
    WeightsError,
    WeightShapeError,
    init_weights,
    weight_shapes,
)
from reference.stream import bell, raw_bits, signs, spread
from strategies import PROFILES, paint

VARIANTS = [
    EncoderConfig.tiny("step3"),
    EncoderConfig.tiny("step3", downsampler_stride=1, projector_bias=True, width=192, layers=3),
    EncoderConfig.tiny("step3-vl-10b"),
    EncoderConfig.tiny("step3-vl-10b", class_token=True, ln_post=True, projector_bias=True),
    EncoderConfig.tiny("step3p7", layer_scale=None, positions=False, ln_pre=False, layers=3),
]

# Frozen: a seed must mean the same tensor with every release, and in every saved case.
STREAM = {
    "raw_bits": "e38feec7c9a885b3",
    "bell": "de8e6ffb0ce56364",
    "bell, scaled": "10a926616869f9b1",
    "signs": "d78af5ec477c73ce",
    "spread": "1052f854e0697e8f",
}
WEIGHTS = {
    "step3": "c64a7b4035869452",
    "step3-vl-10b": "e2bbb0122ef74a3d",
    "step3p7": "e2bbb0122ef74a3d",
}
PICTURES = {
    "normal": "436de3ac61257aaf",
    "constant": "92649a79a4a76ce5",
    "gradient": "15e403631ec33aeb",
    "checkerboard": "e966bdd98a91885b",
    "bright-cell": "e54f4d346c093d11",
    "extreme": "fd534b6e145e40ea",
    "nan": "b9fa99702d911787",
    "inf": "682e73caefd540f8",
}


def digest(*tensors: Tensor) -> str:
    """A short hash of values."""
    hashed = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        hashed.update(tensor.contiguous().numpy().tobytes())
    return hashed.hexdigest()


def drawn() -> dict[str, Tensor]:
    """A few draws of each kind."""
    return {
        "raw_bits": torch.from_numpy(raw_bits(7, "a label", 40).astype("<i8")),
        "bell": bell(7, "a label", (3, 5, 7)),
        "bell, scaled": bell(7, "a label", (3, 5, 7), 0.3),
        "signs": signs(7, "a label", (9, 11)),
        "spread": spread(7, "a label", (4, 6), 32, 96),
    }


@pytest.mark.parametrize("kind", STREAM)
def test_the_stream_is_frozen(kind: str) -> None:
    """A seed and a label give the values that they always gave."""
    assert digest(drawn()[kind]) == STREAM[kind]


@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_weights_are_frozen(family: str) -> None:
    """A seed gives the weights that it always gave."""
    weights = init_weights(EncoderConfig.tiny(family), 3)
    assert digest(*(weights[name] for name in sorted(weights))) == WEIGHTS[family]


@pytest.mark.parametrize("profile", PICTURES)
def test_painted_pictures_are_frozen(profile: str) -> None:
    """A profile and a seed give the picture that they always gave."""
    assert digest(paint(profile, 3, "a label", (3, 6, 8))) == PICTURES[profile]


@pytest.mark.parametrize("kind", ["bell", "signs", "spread"])
def test_labels_and_seeds_make_different_draws(kind: str) -> None:
    """Another label and another seed each give other values; the same give the same."""
    draw = {
        "bell": lambda seed, label: bell(seed, label, (64,)),
        "signs": lambda seed, label: signs(seed, label, (64,)),
        "spread": lambda seed, label: spread(seed, label, (64,), 0, 100),
    }[kind]
    first = draw(1, "one")
    assert torch.equal(first, draw(1, "one"))
    assert not torch.equal(first, draw(2, "one"))
    assert not torch.equal(first, draw(1, "two"))


@pytest.mark.parametrize("kind", ["bell", "signs", "spread"])
def test_a_longer_draw_starts_like_a_shorter_one(kind: str) -> None:
    """A draw of odd length is the beginning of a longer one, whatever its shape."""
    draw = {
        "bell": lambda *shape: bell(1, "x", shape),
        "signs": lambda *shape: signs(1, "x", shape),
        "spread": lambda *shape: spread(1, "x", shape, 0, 100),
    }[kind]
    assert torch.equal(draw(7, 11).flatten(), draw(200)[:77])
    assert draw(0).shape == (0,)
    assert draw().shape == ()


def test_draws_are_spread_as_they_say() -> None:
    """A bell has mean 0 and the deviation asked for, signs are even, a spread fills its range."""
    for deviation in (0.02, 0.3, 1.0, 5.0):
        values = bell(0, "x", (20_000,), deviation)
        assert abs(values.mean()) < 0.05 * deviation
        assert deviation / 1.5 < values.std() < deviation * 1.5
        assert len(values.unique()) > 150
    assert abs(signs(0, "x", (20_000,)).mean()) < 0.03
    values = spread(0, "x", (20_000,), 32, 96)
    assert (values.min(), values.max(), len(values.unique())) == (0.5, 1.5, 65)


@pytest.mark.parametrize(
    ("regime", "dtype"),
    [(regime, dtype) for regime in REGIMES for dtype in (torch.bfloat16, torch.float16)],
)
def test_weights_are_exact_in_low_precision(regime: str, dtype: torch.dtype) -> None:
    """The tensors of every regime, subnormals of float16 included, survive a cast and back."""
    for config in VARIANTS:
        for name, tensor in init_weights(config, 2, regime=regime).items():
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor.to(dtype).float(), tensor), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("profile", PROFILES)
def test_pictures_are_exact_in_low_precision(profile: str, dtype: torch.dtype) -> None:
    """The pictures of every profile survive a cast and back, NaN as NaN."""
    for seed in range(20):
        picture = paint(profile, seed, f"{seed}", (3, 15, 12))
        assert torch.equal(picture.to(dtype).float().nan_to_num(0.125), picture.nan_to_num(0.125))


@pytest.mark.parametrize("config", VARIANTS, ids=lambda config: config.family)
def test_every_regime_has_the_shapes_of_its_configuration(config: EncoderConfig) -> None:
    """Drawn tensors have exactly the names and shapes of `weight_shapes`, and are finite."""
    shapes = weight_shapes(config)
    for regime in REGIMES:
        weights = init_weights(config, 0, regime=regime)
        assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == shapes
        assert all(bool(tensor.isfinite().all()) for tensor in weights.values())


def test_an_unknown_regime_is_named() -> None:
    """A regime that there is not is refused by name."""
    with pytest.raises(ValueError, match="'peaked'"):
        init_weights(EncoderConfig.tiny("step3"), 0, regime="peaked")


def test_regimes_differ_and_leave_no_trace() -> None:
    """Each regime but `balanced` changes some tensor, and none changes the next draw."""
    config = EncoderConfig.tiny("step3-vl-10b")
    before = init_weights(config, 0)
    for regime in REGIMES.keys() - {"balanced"}:
        changed = init_weights(config, 0, regime=regime)
        assert any(not torch.equal(changed[name], before[name]) for name in before), regime
    after = init_weights(config, 0)
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize("config", VARIANTS, ids=lambda config: config.family)
def test_balanced_weights_hide_nothing(config: EncoderConfig) -> None:
    """No tensor is constant: biases are not zero, norm weights and layer scales are unequal."""
    for name, tensor in init_weights(config, 0).items():
        assert tensor.std() > 0, name


def test_published_names_of_step3() -> None:
    """`step3` has its tensors under the published names, in the published shapes."""
    shapes = weight_shapes(EncoderConfig.published("step3"))
    layers = [f"vision_model.transformer.layers.{layer}" for layer in range(63)]
    per_layer = {
        "layer_norm1.weight": (1792,),
        "layer_norm1.bias": (1792,),
        "layer_norm2.weight": (1792,),
        "layer_norm2.bias": (1792,),
        "self_attn.qkv_proj.weight": (5376, 1792),
        "self_attn.qkv_proj.bias": (5376,),
        "self_attn.out_proj.weight": (1792, 1792),
        "self_attn.out_proj.bias": (1792,),
        "mlp.fc1.weight": (3072, 1792),
        "mlp.fc1.bias": (3072,),
        "mlp.fc2.weight": (1792, 3072),
        "mlp.fc2.bias": (1792,),
    }
    assert shapes == {
        "vision_model.embeddings.class_embedding": (1, 1792),
        "vision_model.embeddings.patch_embedding.weight": (1792, 3, 14, 14),
        "vision_model.embeddings.patch_embedding.bias": (1792,),
        "vision_model.embeddings.position_embedding.weight": (52 * 52 + 1, 1792),
        **{f"{layer}.{name}": shape for layer in layers for name, shape in per_layer.items()},
        "vit_downsampler.weight": (4096, 1792, 2, 2),
        "vit_downsampler.bias": (4096,),
        "vit_downsampler2.weight": (8192, 4096, 3, 3),
        "vit_downsampler2.bias": (8192,),
        "vit_large_projector.weight": (7168, 8192),
        "vit_large_projector.bias": (7168,),
    }


@pytest.mark.parametrize("family", FAMILIES[1:])
def test_published_names_of_the_perception_encoder(family: str) -> None:
    """`step3-vl-10b` and `step3p7` have their tensors under the published names and shapes."""
    shapes = weight_shapes(EncoderConfig.published(family))
    blocks = [f"vision_model.transformer.resblocks.{layer}" for layer in range(47)]
    per_block = {
        "ln_1.weight": (1536,),
        "ln_1.bias": (1536,),
        "ln_2.weight": (1536,),
        "ln_2.bias": (1536,),
        "ls_1.gamma": (1536,),
        "ls_2.gamma": (1536,),
        "attn.in_proj_weight": (4608, 1536),
        "attn.in_proj_bias": (4608,),
        "attn.out_proj.weight": (1536, 1536),
        "attn.out_proj.bias": (1536,),
        "mlp.c_fc.weight": (8960, 1536),
        "mlp.c_fc.bias": (8960,),
        "mlp.c_proj.weight": (1536, 8960),
        "mlp.c_proj.bias": (1536,),
    }
    assert shapes == {
        "vision_model.conv1.weight": (1536, 3, 14, 14),
        "vision_model.ln_pre.weight": (1536,),
        "vision_model.ln_pre.bias": (1536,),
        "vision_model.positional_embedding": (52 * 52, 1536),
        **{f"{block}.{name}": shape for block in blocks for name, shape in per_block.items()},
        "vision_model.vit_downsampler1.weight": (3072, 1536, 3, 3),
        "vision_model.vit_downsampler1.bias": (3072,),
        "vision_model.vit_downsampler2.weight": (6144, 3072, 3, 3),
        "vision_model.vit_downsampler2.bias": (6144,),
        "vit_large_projector.weight": (4096, 6144),
    }


def test_optional_tensors_come_with_their_options() -> None:
    """Class token, norms, layer scale, positions and projector bias have tensors if configured."""
    plain = weight_shapes(EncoderConfig.tiny("step3-vl-10b"))
    changed = EncoderConfig.tiny(
        "step3-vl-10b",
        class_token=True,
        ln_pre=False,
        ln_post=True,
        layer_scale=None,
        projector_bias=True,
    )
    shapes = weight_shapes(changed)
    vision = "vision_model."
    gammas = {f"{vision}transformer.resblocks.{n}.ls_{i}.gamma" for n in (0, 1) for i in (1, 2)}
    assert (
        plain.keys() - shapes.keys() == {f"{vision}ln_pre.weight", f"{vision}ln_pre.bias"} | gammas
    )
    assert {name: shapes[name] for name in shapes.keys() - plain.keys()} == {
        f"{vision}class_embedding": (16,),
        f"{vision}ln_post.weight": (16,),
        f"{vision}ln_post.bias": (16,),
        "vit_large_projector.bias": (12,),
    }
    assert shapes[f"{vision}positional_embedding"] == (17, 16)
    without = weight_shapes(changed.replace(positions=False))
    assert f"{vision}positional_embedding" not in without


@pytest.mark.parametrize("family", FAMILIES)
def test_each_missing_tensor_is_named(family: str) -> None:
    """Whichever tensor is missing, the error names it (WE-02)."""
    config = EncoderConfig.tiny(family)
    weights = init_weights(config, 0)
    for name in weights:
        rest = {other: tensor for other, tensor in weights.items() if other != name}
        with pytest.raises(MissingWeightsError) as caught:
            ReferenceEncoder(config, rest)
        assert name in str(caught.value)
        assert family in str(caught.value)


@pytest.mark.parametrize("name", ["lm_head.weight", "vision_model.conv1.bias", ""], ids=repr)
def test_an_unknown_tensor_is_named(name: str) -> None:
    """A tensor without a place is refused by name (WE-02)."""
    config = EncoderConfig.tiny("step3-vl-10b")
    with pytest.raises(UnknownWeightsError) as caught:
        ReferenceEncoder(config, {**init_weights(config, 0), name: torch.zeros(1)})
    assert name in str(caught.value)


def test_a_tensor_of_the_wrong_shape_is_named_with_both_shapes() -> None:
    """A transposed matrix is refused; the message has its name, its shape and the right one."""
    config = EncoderConfig.tiny("step3")
    name = "vision_model.transformer.layers.1.mlp.fc1.weight"
    weights = init_weights(config, 0)
    weights[name] = weights[name].T
    with pytest.raises(WeightShapeError) as caught:
        ReferenceEncoder(config, weights)
    assert f"{name} (16, 24) (expected (24, 16))" in str(caught.value)


def test_a_flat_tensor_is_no_substitute() -> None:
    """A tensor with the right number of elements in another shape is refused."""
    config = EncoderConfig.tiny("step3")
    name = "vision_model.embeddings.class_embedding"
    weights = init_weights(config, 0)
    weights[name] = weights[name].flatten()
    with pytest.raises(WeightShapeError, match="class_embedding"):
        ReferenceEncoder(config, weights)


def test_long_lists_of_names_are_cut() -> None:
    """With every tensor missing the message names eight and counts the others."""
    config = EncoderConfig.tiny("step3")
    with pytest.raises(WeightsError, match=rf"and {len(weight_shapes(config)) - 8} more"):
        ReferenceEncoder(config, {})


def test_fan_in_sets_the_scale_of_matrices() -> None:
    """A matrix of n inputs has a deviation of about n^-1/2."""
    config = EncoderConfig.tiny("step3-vl-10b", width=64, mlp_width=256)
    weights = init_weights(config, 0)
    for name, inputs in (("c_fc", 64), ("c_proj", 256)):
        matrix = weights[f"vision_model.transformer.resblocks.0.mlp.{name}.weight"]
        assert 0.7 < matrix.std() * math.sqrt(inputs) < 1.5
