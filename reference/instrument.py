"""Editing weights by what they are for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reference.config import EncoderConfig
from reference.stream import bell

Weights = dict[str, Tensor]

_STEP3_ROLES = {
    "norm1": "layer_norm1",
    "norm2": "layer_norm2",
    "qkv": "self_attn.qkv_proj",
    "out": "self_attn.out_proj",
    "fc1": "mlp.fc1",
    "fc2": "mlp.fc2",
}
_PERCEPTION_ROLES = {
    "norm1": "ln_1",
    "norm2": "ln_2",
    "qkv": "attn.in_proj",
    "out": "attn.out_proj",
    "fc1": "mlp.c_fc",
    "fc2": "mlp.c_proj",
}
POSITIONS = (
    "vision_model.embeddings.position_embedding.weight",
    "vision_model.positional_embedding",
)
CLASS_TOKENS = ("vision_model.embeddings.class_embedding", "vision_model.class_embedding")


@dataclass(frozen=True)
class Instrument:
    """Balanced weights, and the edits that regimes make to them in place."""

    config: EncoderConfig
    seed: int
    weights: Weights

    @property
    def step3(self) -> bool:
        """Whether the architecture is that of `step3`."""
        return self.config.family == "step3"

    @property
    def tokens(self) -> str:
        """The patch embedding's prefix."""
        return "vision_model.embeddings.patch_embedding" if self.step3 else "vision_model.conv1"

    def part(self, layer: int, role: str) -> tuple[str, str]:
        """The names of weight and bias of a part of a block."""
        if self.step3:
            prefix = f"vision_model.transformer.layers.{layer}.{_STEP3_ROLES[role]}"
            return f"{prefix}.weight", f"{prefix}.bias"
        prefix = f"vision_model.transformer.resblocks.{layer}.{_PERCEPTION_ROLES[role]}"
        joint = "_" if role == "qkv" else "."
        return f"{prefix}{joint}weight", f"{prefix}{joint}bias"

    def fill(self, value: float, *names: str) -> None:
        """Set whole tensors to a value; names that the configuration lacks are skipped."""
        for name in names:
            if name in self.weights:
                self.weights[name] = torch.full_like(self.weights[name], value)

    def scale(self, factor: float, *names: str) -> None:
        """Multiply whole tensors; names that the configuration lacks are skipped."""
        for name in names:
            if name in self.weights:
                self.weights[name] = self.weights[name] * factor

    def gammas(self, layer: int) -> tuple[str, str]:
        """The names of a block's layer scales, attention's first."""
        prefix = f"vision_model.transformer.resblocks.{layer}"
        return f"{prefix}.ls_1.gamma", f"{prefix}.ls_2.gamma"

    def unit(self, *norms: str) -> None:
        """Make the weight of norms one and their bias zero."""
        for norm in norms:
            self.fill(1.0, f"{norm}.weight")
            self.fill(0.0, f"{norm}.bias")

    def unit_norm(self, layer: int, role: str) -> None:
        """Make the weight of a block's norm one and its bias zero."""
        self.unit(self.part(layer, role)[0].removesuffix(".weight"))

    def kill(self, layer: int) -> None:
        """Make both branches of a block end in zeros."""
        self.fill(0.0, *self.part(layer, "out"), *self.part(layer, "fc2"))
        self.fill(0.0, *self.part(layer, "norm1"), *self.part(layer, "norm2"))

    def glass(self) -> Weights:
        """Make the encoder transparent; returns the balanced weights as they were."""
        before = dict(self.weights)
        for layer in range(self.config.layers):
            self.kill(layer)
            if not self.step3:
                self.fill(1.0, *self.gammas(layer))
        self.unit("vision_model.ln_pre", "vision_model.ln_post")
        self.fill(0.0, *POSITIONS, *CLASS_TOKENS)
        return before

    def wake(self, before: Weights, *roles: str) -> None:
        """Give parts of the first block their balanced weights back."""
        for role in roles:
            for name in self.part(0, role):
                self.weights[name] = before[name]

    def equal_tokens(self) -> Tensor:
        """Make every token of a constant picture the same vector, and return that vector.

        The convolution looks at one tap of the middle channel, so neither the order of channels
        nor that of rows and columns matters, and no token is told from another. A second tap,
        on the diagonal too, tells a cell apart where a picture lights it.
        """
        weight = self.weights[f"{self.tokens}.weight"]
        vector = bell(self.seed, "equal token", weight.shape[:1])
        sparse = torch.zeros_like(weight)
        sparse[:, 1, 0, 0] = vector
        sparse[:, 1, -1, -1] += bell(self.seed, "lit token", weight.shape[:1])
        self.weights[f"{self.tokens}.weight"] = sparse
        self.fill(0.0, f"{self.tokens}.bias")
        return sparse.sum(dim=(1, 2, 3))

    def class_tokens(self, vector: Tensor) -> None:
        """Set the class token, where there is one."""
        for name in CLASS_TOKENS:
            if name in self.weights:
                self.weights[name] = vector.reshape(self.weights[name].shape).clone()

    def uniform_attention(self) -> None:
        """In the first block, make queries zero and keys equal to values."""
        width = self.config.width
        for name in self.part(0, "qkv"):
            fused = self.weights[name].clone()
            fused[:width] = 0.0
            fused[width : 2 * width] = fused[2 * width :]
            self.weights[name] = fused

    def scale_queries(self, factor: float) -> None:
        """In the first block, multiply queries, and so the scores, by a power of two."""
        width = self.config.width
        for name in self.part(0, "qkv"):
            fused = self.weights[name].clone()
            fused[:width] *= factor
            self.weights[name] = fused
