"""Configurations: to the published shape and back, the published sizes, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reference import FAMILIES, EncoderConfig
from strategies.configs import VARIANTS, tiny

each_family = pytest.mark.parametrize("family", FAMILIES)

SETTLED_EPS = {"step3": 1e-6, "step3-vl-10b": 1e-5, "step3p7": 1e-5}
MODEL_TYPES = {"step3": "step3_vl", "step3-vl-10b": "step_robotics", "step3p7": "step3p7"}

CHANGES: dict[str, list[dict[str, Any]]] = {
    "step3": [
        {"downsampler_stride": 1},
        {"downsampler_width": 20},
        {"projector_bias": True},
        {"hidden_act": "gelu"},
        {"image_size": 15, "patch_size": 3},
    ],
    "step3-vl-10b": [
        {"class_token": True},
        {"ln_pre": False},
        {"ln_post": True},
        {"layer_scale": None},
        {"layer_scale": 1e-5},
        {"positions": False},
        {"rotary": False},
        {"projector_bias": True},
        {"hidden_act": "gelu"},
        {"width": 24, "heads": 3, "mlp_width": 35},
    ],
}


def every_config() -> list[EncoderConfig]:
    """Configurations that differ from the tiny ones in each field, and the published ones."""
    found = [EncoderConfig.tiny(family) for family in FAMILIES]
    found += [tiny(family, variant) for family in FAMILIES for variant in VARIANTS]
    found += [
        EncoderConfig.tiny(family, **changes)
        for family in FAMILIES
        for changes in CHANGES.get(family, CHANGES["step3-vl-10b"])
    ]
    return [*found, *(EncoderConfig.published(family) for family in FAMILIES)]


@pytest.mark.parametrize("config", every_config(), ids=lambda config: config.family)
def test_to_hf_and_back(config: EncoderConfig) -> None:
    """Every configuration survives the published shape, through JSON."""
    assert EncoderConfig.from_hf(json.loads(json.dumps(config.to_hf()))) == config


@pytest.mark.parametrize("config", every_config(), ids=lambda config: config.family)
def test_the_mlp_width_survives_truncation(config: EncoderConfig) -> None:
    """Code that truncates width * mlp_ratio finds the MLP's width."""
    vision = config.to_hf()["vision_config"]
    if "mlp_ratio" in vision:
        assert int(vision["width"] * vision["mlp_ratio"]) == config.mlp_width


@each_family
def test_to_hf_has_the_fields_that_published_code_reads(family: str) -> None:
    """The widths, the projector's options and the model type stand where they are published."""
    hf = EncoderConfig.published(family).to_hf()
    assert hf["model_type"] == MODEL_TYPES[family]
    assert hf["text_config"]["hidden_size"] == EncoderConfig.published(family).text_width
    assert hf["understand_projector_stride"] == 2
    assert hf["projector_bias"] is (family == "step3")
    assert hf["vision_config"]["image_size"] == 728
    assert hf["vision_config"]["patch_size"] == 14


@each_family
def test_published_sizes(family: str) -> None:
    """728 pixels give 169 rows and 504 pixels 81, in all families."""
    config = EncoderConfig.published(family)
    assert config.grid == 52
    assert config.rows(728, 728) == 169
    assert config.rows(504, 504) == 81


def test_published_architectures() -> None:
    """Layers, widths and heads are those of the published checkpoints."""
    sizes = {
        family: (c.layers, c.width, c.heads, c.head_dim, c.mlp_width, c.text_width)
        for family in FAMILIES
        for c in [EncoderConfig.published(family)]
    }
    perception = (47, 1536, 16, 96, 8960, 4096)
    assert sizes == {
        "step3": (63, 1792, 16, 112, 3072, 7168),
        "step3-vl-10b": perception,
        "step3p7": perception,
    }


@each_family
def test_settled_values(family: str) -> None:
    """The norms' epsilon and the rotary base are the contract's, published and tiny."""
    for config in (EncoderConfig.published(family), EncoderConfig.tiny(family)):
        assert config.norm_eps == SETTLED_EPS[family]
        assert config.rotary_base == 10000.0


@each_family
def test_from_hf_takes_the_settled_values_whatever_the_file_says(family: str) -> None:
    """Another epsilon or rotary base in the file is passed over."""
    config = EncoderConfig.tiny(family)
    hf = config.to_hf()
    hf["vision_config"] |= {"layer_norm_eps": 0.5, "rope_theta": 7.0}
    assert EncoderConfig.from_hf(hf) == config


@each_family
def test_from_hf_passes_over_other_fields(family: str) -> None:
    """Fields that the encoder has no use for are no error."""
    config = EncoderConfig.tiny(family)
    hf = {**config.to_hf(), "torch_dtype": "bfloat16", "im_end_token": "<im_end>"}
    hf["text_config"] = {**hf["text_config"], "num_experts": 48}
    assert EncoderConfig.from_hf(hf) == config


def test_fields_that_files_leave_out() -> None:
    """Optional fields of the published files have the defaults of published code."""
    hf = EncoderConfig.published("step3").to_hf()
    for name in ("projector_bias", "understand_projector_stride"):
        del hf[name]
    for name in ("intermediate_size", "hidden_act", "layer_norm_eps"):
        del hf["vision_config"][name]
    expected = EncoderConfig.published("step3").replace(downsampler_stride=1)
    assert EncoderConfig.from_hf(hf) == expected

    hf = EncoderConfig.published("step3p7").to_hf()
    del hf["projector_bias"]
    kept = {"width", "layers", "heads", "image_size", "patch_size", "mlp_ratio"}
    hf["vision_config"] = {k: v for k, v in hf["vision_config"].items() if k in kept}
    assert EncoderConfig.from_hf(hf) == EncoderConfig.published("step3p7")


NEEDED = {
    "step3": {
        "image_size",
        "patch_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "output_hidden_size",
    },
    "step3-vl-10b": {"image_size", "patch_size", "width", "layers", "heads", "mlp_ratio"},
    "step3p7": {"image_size", "patch_size", "width", "layers", "heads", "mlp_ratio"},
}


@each_family
def test_from_hf_names_the_missing_field(family: str) -> None:
    """Without a field that it needs the error names field and model type."""
    for name in NEEDED[family]:
        hf = EncoderConfig.tiny(family).to_hf()
        del hf["vision_config"][name]
        with pytest.raises(ValueError, match=f"'{MODEL_TYPES[family]}' has no field '{name}'"):
            EncoderConfig.from_hf(hf)


@pytest.mark.parametrize("section", ["vision_config", "text_config"])
@each_family
def test_from_hf_names_the_missing_section(family: str, section: str) -> None:
    """Without a whole section the error names it."""
    hf = EncoderConfig.tiny(family).to_hf()
    del hf[section]
    with pytest.raises(ValueError, match=section):
        EncoderConfig.from_hf(hf)


@pytest.mark.parametrize("section", ["vision_config", "text_config"])
def test_from_hf_names_a_section_that_is_null(section: str) -> None:
    """A section that is null is as good as missing."""
    hf = EncoderConfig.tiny("step3p7").to_hf()
    with pytest.raises(ValueError, match=section):
        EncoderConfig.from_hf({**hf, section: None})


@pytest.mark.parametrize("model_type", ["qwen2_vl", None, ""])
def test_from_hf_names_an_unknown_model_type(model_type: str | None) -> None:
    """A model type that is none of the three families is named."""
    hf = {**EncoderConfig.tiny("step3").to_hf(), "model_type": model_type}
    with pytest.raises(ValueError, match=f"model_type {model_type!r}"):
        EncoderConfig.from_hf(hf)


def test_from_hf_without_a_model_type() -> None:
    """An empty file is refused."""
    with pytest.raises(ValueError, match="model_type None"):
        EncoderConfig.from_hf({})


WRONG: list[tuple[str, str, Any]] = [
    *((family, name, 0) for family in FAMILIES for name in ("image_size", "patch_size", "width")),
    *((family, name, -1) for family in FAMILIES for name in ("layers", "heads", "mlp_width")),
    *((family, "text_width", 0) for family in FAMILIES),
    *((family, "hidden_act", "relu") for family in FAMILIES),
    *((family, "norm_eps", value) for family in FAMILIES for value in (0.0, -1e-6)),
    *((family, "heads", 3) for family in FAMILIES),
    *((family, "patch_size", 9) for family in FAMILIES),
    ("step3", "class_token", False),
    ("step3", "positions", False),
    ("step3", "ln_pre", True),
    ("step3", "ln_post", True),
    ("step3", "rotary", True),
    ("step3", "layer_scale", 0.1),
    ("step3", "downsampler_stride", 3),
    ("step3", "downsampler_stride", 0),
    ("step3", "downsampler_width", None),
    ("step3", "downsampler_width", 0),
    ("step3p7", "downsampler_stride", 1),
    ("step3-vl-10b", "downsampler_width", 12),
]

# The field in the message, where it is another than the one that was changed.
BLAMED = {("heads", 3): "width is 16", ("patch_size", 9): "image_size is 8"}


@pytest.mark.parametrize(("family", "name", "value"), WRONG)
def test_a_wrong_value_is_named(family: str, name: str, value: Any) -> None:
    """A value out of range, or one that the family has no choice in, is named with its field."""
    with pytest.raises(ValueError, match="it must be") as caught:
        EncoderConfig.tiny(family, **{name: value})
    blamed = BLAMED.get((name, value), f"{name} is {value!r}")
    assert f"EncoderConfig.{blamed}" in str(caught.value)


def test_rotary_needs_pairs_in_both_halves() -> None:
    """A head of 6 channels cannot turn in two dimensions; without rotary it is fine."""
    with pytest.raises(ValueError, match="head_dim is 6"):
        EncoderConfig.tiny("step3p7", width=12)
    assert EncoderConfig.tiny("step3p7", width=12, rotary=False).head_dim == 6


@pytest.mark.parametrize("make", [EncoderConfig.tiny, EncoderConfig.published])
def test_an_unknown_family_is_named(make: Any) -> None:
    """A family that there is not is refused by name."""
    with pytest.raises(ValueError, match="'step4'"):
        make("step4")
    with pytest.raises(ValueError, match="'step4'"):
        EncoderConfig.tiny("step3").replace(family="step4")


@each_family
def test_configurations_are_values(family: str) -> None:
    """Equal fields make equal, equally hashed configurations that cannot be written to."""
    config = EncoderConfig.tiny(family)
    assert config == EncoderConfig.tiny(family)
    assert len({config, EncoderConfig.tiny(family), config.replace(layers=5)}) == 2
    with pytest.raises(AttributeError):
        config.layers = 5  # type: ignore[misc]
    assert config.layers == 2
