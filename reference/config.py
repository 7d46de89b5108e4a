"""The configuration of an encoder, in one vocabulary for the three families."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FAMILIES = ("step3", "step3-vl-10b", "step3p7")

# Contract, settled points: published code and configurations disagree; these values are right.
STEP3_NORM_EPS = 1e-6
PERCEPTION_NORM_EPS = 1e-5
ROTARY_BASE = 10000.0

ACTIVATIONS = ("quick_gelu", "gelu")

_MODEL_TYPES = {"step3": "step3_vl", "step3-vl-10b": "step_robotics", "step3p7": "step3p7"}
_ARCHITECTURES = {
    "step3": "Step3VLForConditionalGeneration",
    "step3-vl-10b": "StepVLForConditionalGeneration",
    "step3p7": "Step3p7ForConditionalGeneration",
}


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """What an encoder is built from.

    Attributes:
        family: `step3`, `step3-vl-10b` or `step3p7`.
        image_size: side of the square picture, in pixels, that the position table is made for.
        patch_size: side of one cell, in pixels.
        width: channels of the tower.
        layers: number of transformer blocks.
        heads: attention heads; `width` is a multiple of it.
        mlp_width: channels inside the MLP.
        text_width: channels of the result (D of the contract).
        hidden_act: `quick_gelu` or `gelu`.
        projector_bias: whether the projector adds a bias.
        norm_eps: epsilon of every layer norm.
        downsampler_stride: stride of the first downsampler (`step3` only; the others use 2).
        downsampler_width: channels after the first downsampler (`step3` only; the others
            double and double again).
        class_token: whether a class token is prepended (always in `step3`).
        ln_pre: whether a layer norm precedes the blocks (never in `step3`).
        ln_post: whether a layer norm follows the blocks (never in `step3`).
        layer_scale: the initial layer scale, or None for none (always None in `step3`).
        positions: whether the position table is added (always in `step3`).
        rotary: whether queries and keys rotate (never in `step3`).
        rotary_base: base of the rotary frequencies.

    Raises:
        ValueError: a value is out of range or does not fit the family; the message names it.
    """

    family: str
    image_size: int
    patch_size: int
    width: int
    layers: int
    heads: int
    mlp_width: int
    text_width: int
    hidden_act: str = "quick_gelu"
    projector_bias: bool = False
    norm_eps: float
    downsampler_stride: int = 2
    downsampler_width: int | None = None
    class_token: bool = False
    ln_pre: bool = True
    ln_post: bool = False
    layer_scale: float | None = 0.1
    positions: bool = True
    rotary: bool = True
    rotary_base: float = ROTARY_BASE

    def __post_init__(self) -> None:
        _require(self.family in FAMILIES, "family", self.family, f"one of {FAMILIES}")
        for name in ("image_size", "patch_size", "width", "layers", "heads", "mlp_width"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        _require(self.text_width >= 1, "text_width", self.text_width, "at least 1")
        _require(self.image_size >= self.patch_size, "image_size", self.image_size, "a patch wide")
        _require(self.width % self.heads == 0, "width", self.width, "a multiple of heads")
        _require(self.hidden_act in ACTIVATIONS, "hidden_act", self.hidden_act, f"in {ACTIVATIONS}")
        _require(self.norm_eps > 0, "norm_eps", self.norm_eps, "positive")
        if self.family == "step3":
            self._require_step3()
        else:
            self._require_perception()

    def _require_step3(self) -> None:
        _require(self.class_token, "class_token", self.class_token, "True in step3")
        _require(self.positions, "positions", self.positions, "True in step3")
        for name in ("ln_pre", "ln_post", "rotary"):
            _require(not getattr(self, name), name, getattr(self, name), "False in step3")
        _require(self.layer_scale is None, "layer_scale", self.layer_scale, "None in step3")
        stride = self.downsampler_stride
        _require(stride in (1, 2), "downsampler_stride", stride, "1 or 2")
        width = self.downsampler_width
        _require(width is not None and width >= 1, "downsampler_width", width, "at least 1")

    def _require_perception(self) -> None:
        stride, width = self.downsampler_stride, self.downsampler_width
        _require(stride == 2, "downsampler_stride", stride, f"2 in {self.family}")
        _require(width is None, "downsampler_width", width, f"None in {self.family}")
        if self.rotary:
            _require(self.head_dim % 4 == 0, "head_dim", self.head_dim, "a multiple of 4")

    @property
    def head_dim(self) -> int:
        """Channels of one attention head."""
        return self.width // self.heads

    @property
    def grid(self) -> int:
        """Cells along one side of the native picture."""
        return self.image_size // self.patch_size

    def rows(self, height: int, width: int) -> int:
        """Rows of the result for one picture of `height` x `width` pixels (LA-01).

        A side of g cells becomes ceil(ceil(g/2)/2); in `step3`,
        ceil((floor((g-2)/stride)+1)/2).
        """
        return self._side(height // self.patch_size) * self._side(width // self.patch_size)

    def _side(self, cells: int) -> int:
        if self.family == "step3":
            first = (cells - 2) // self.downsampler_stride + 1
        else:
            first = -(-cells // 2)
        return -(-first // 2)

    def replace(self, **changes: Any) -> EncoderConfig:
        """The same configuration with some fields changed."""
        return dataclasses.replace(self, **changes)

    def to_hf(self) -> dict[str, Any]:
        """The configuration in the shape of the published `config.json`."""
        vision = self._step3_vision() if self.family == "step3" else self._perception_vision()
        return {
            "architectures": [_ARCHITECTURES[self.family]],
            "model_type": _MODEL_TYPES[self.family],
            "understand_projector_stride": self.downsampler_stride,
            "projector_bias": self.projector_bias,
            "hidden_size": self.text_width,
            "vision_config": vision,
            "text_config": {"hidden_size": self.text_width},
        }

    def _step3_vision(self) -> dict[str, Any]:
        return {
            "model_type": "step3_vision_encoder",
            "hidden_size": self.width,
            "intermediate_size": self.mlp_width,
            "output_hidden_size": self.downsampler_width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_channels": 3,
            "image_size": self.image_size,
            "patch_size": self.patch_size,
            "hidden_act": self.hidden_act,
            "layer_norm_eps": self.norm_eps,
        }

    def _perception_vision(self) -> dict[str, Any]:
        return {
            "model_type": "perception_encoder",
            "width": self.width,
            "layers": self.layers,
            "heads": self.heads,
            "num_channels": 3,
            "image_size": self.image_size,
            "patch_size": self.patch_size,
            "mlp_ratio": self.mlp_width / self.width,
            "hidden_act": self.hidden_act,
            "layer_norm_eps": self.norm_eps,
            "output_dim": None,
            "pool_type": "none",
            "use_cls_token": self.class_token,
            "ues_cls_token": self.class_token,  # sglang and vLLM read the published misspelling
            "use_ln_pre": self.ln_pre,
            "use_ln_post": self.ln_post,
            "use_abs_posemb": self.positions,
            "use_rope2d": self.rotary,
            "rope_theta": self.rotary_base,
            "ls_init_value": self.layer_scale,
        }

    @classmethod
    def from_hf(cls, hf: Mapping[str, Any]) -> EncoderConfig:
        """Read a published `config.json`.

        The norms' epsilon and the rotary base are the contract's settled values, whatever the
        file says: the published files carry others than the models were trained with.

        Args:
            hf: the parsed file.

        Raises:
            ValueError: a field is missing or the model type is none of the three families.
        """
        families = {model_type: family for family, model_type in _MODEL_TYPES.items()}
        model_type = hf.get("model_type")
        if model_type not in families:
            raise ValueError(f"model_type {model_type!r} is none of {tuple(families)}")
        for section in ("vision_config", "text_config"):
            if not isinstance(hf.get(section), Mapping):
                raise ValueError(f"config.json of {model_type!r} has no {section}")
        read = _read_step3 if model_type == "step3_vl" else _read_perception
        try:
            return cls(
                family=families[model_type],
                text_width=hf["text_config"]["hidden_size"],
                **read(hf, hf["vision_config"]),
            )
        except KeyError as missing:
            raise ValueError(f"config.json of {model_type!r} has no field {missing}") from None

    @classmethod
    def published(cls, family: str) -> EncoderConfig:
        """The published size of a family."""
        try:
            return _PUBLISHED[family]
        except KeyError:
            raise ValueError(f"family {family!r} is none of {FAMILIES}") from None

    @classmethod
    def tiny(cls, family: str, **changes: Any) -> EncoderConfig:
        """A configuration of a few thousand parameters, for tests; `changes` override fields."""
        if family not in FAMILIES:
            raise ValueError(f"family {family!r} is none of {FAMILIES}")
        own = _TINY_STEP3 if family == "step3" else _TINY_PERCEPTION
        return cls(**{"family": family, **_TINY, **own, **changes})


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ValueError(f"EncoderConfig.{name} is {value!r}; it must be {rule}")


def _read_step3(hf: Mapping[str, Any], vision: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image_size": vision["image_size"],
        "patch_size": vision["patch_size"],
        "width": vision["hidden_size"],
        "layers": vision["num_hidden_layers"],
        "heads": vision["num_attention_heads"],
        # Defaults of sglang 0.5.23, srt/configs/step3_vl.py.
        "mlp_width": vision.get("intermediate_size", 3072),
        "hidden_act": vision.get("hidden_act", "quick_gelu"),
        "projector_bias": hf.get("projector_bias", True),
        "downsampler_stride": hf.get("understand_projector_stride", 1),
        "downsampler_width": vision["output_hidden_size"],
        "norm_eps": STEP3_NORM_EPS,
        **_STEP3_ONLY,
    }


def _read_perception(hf: Mapping[str, Any], vision: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image_size": vision["image_size"],
        "patch_size": vision["patch_size"],
        "width": vision["width"],
        "layers": vision["layers"],
        "heads": vision["heads"],
        "mlp_width": round(vision["width"] * vision["mlp_ratio"]),
        "hidden_act": vision.get("hidden_act", "quick_gelu"),
        "projector_bias": hf.get("projector_bias", False),
        "norm_eps": PERCEPTION_NORM_EPS,
        "class_token": vision.get("use_cls_token", vision.get("ues_cls_token", False)),
        "ln_pre": vision.get("use_ln_pre", True),
        "ln_post": vision.get("use_ln_post", False),
        "layer_scale": vision.get("ls_init_value", 0.1),
        "positions": vision.get("use_abs_posemb", True),
        "rotary": vision.get("use_rope2d", True),
    }


_STEP3_ONLY = {
    "class_token": True,
    "ln_pre": False,
    "ln_post": False,
    "layer_scale": None,
    "rotary": False,
}

_TINY = {
    "image_size": 8,
    "patch_size": 2,
    "width": 16,
    "layers": 2,
    "heads": 2,
    "mlp_width": 24,
    "text_width": 12,
}
_TINY_STEP3 = {**_STEP3_ONLY, "norm_eps": STEP3_NORM_EPS, "downsampler_width": 12}
_TINY_PERCEPTION = {"norm_eps": PERCEPTION_NORM_EPS}

_PUBLISHED_PERCEPTION = {
    "image_size": 728,
    "patch_size": 14,
    "width": 1536,
    "layers": 47,
    "heads": 16,
    "mlp_width": 8960,
    "text_width": 4096,
    "norm_eps": PERCEPTION_NORM_EPS,
}

# Sources: the published config.json of each checkpoint, and where that is silent the defaults of
# sglang 0.5.23 (srt/configs/step3_vl.py).
_PUBLISHED = {
    "step3": EncoderConfig(
        family="step3",
        image_size=728,
        patch_size=14,
        width=1792,
        layers=63,
        heads=16,
        mlp_width=3072,
        text_width=7168,
        projector_bias=True,
        downsampler_width=4096,
        norm_eps=STEP3_NORM_EPS,
        **_STEP3_ONLY,  # type: ignore[arg-type]
    ),
    "step3-vl-10b": EncoderConfig(family="step3-vl-10b", **_PUBLISHED_PERCEPTION),  # type: ignore[arg-type]
    "step3p7": EncoderConfig(family="step3p7", **_PUBLISHED_PERCEPTION),  # type: ignore[arg-type]
}
