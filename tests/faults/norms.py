"""Faults of the norms."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.config import PERCEPTION_NORM_EPS, STEP3_NORM_EPS
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.faults.fault import PRECISE, tower_fault


class NormBefore(Step3Tower):
    """`x + f(LN(x))`, as the other families."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:  # noqa: ARG002
        name = f"vision_model.transformer.layers.{layer}"
        normed = self.norm(f"{name}.layer_norm1", tokens)
        tokens = tokens + self.attention(layer, f"{name}.self_attn", normed)
        normed = self.norm(f"{name}.layer_norm2", tokens)
        return tokens + self.mlp(layer, f"{name}.mlp.fc1", f"{name}.mlp.fc2", normed)


class NormOfTheSum(Step3Tower):
    """`LN(x + f(x))`, as the first transformers."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:  # noqa: ARG002
        name = f"vision_model.transformer.layers.{layer}"
        attended = self.attention(layer, f"{name}.self_attn", tokens)
        tokens = self.norm(f"{name}.layer_norm1", tokens + attended)
        hidden = self.mlp(layer, f"{name}.mlp.fc1", f"{name}.mlp.fc2", tokens)
        return self.norm(f"{name}.layer_norm2", tokens + hidden)


class NormAfter(PerceptionTower):
    """`x + scale * LN(f(x))`, as `step3`."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        name = f"vision_model.transformer.resblocks.{layer}"
        attended = self.norm(f"{name}.ln_1", self.attention(layer, f"{name}.attn", tokens, grid))
        tokens = tokens + self.scale(f"{name}.ls_1", attended)
        hidden = self.mlp(layer, f"{name}.mlp.c_fc", f"{name}.mlp.c_proj", tokens)
        return tokens + self.scale(f"{name}.ls_2", self.norm(f"{name}.ln_2", hidden))


class ParallelBranches(PerceptionTower):
    """The MLP reads what attention reads, not what attention has added to."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        name = f"vision_model.transformer.resblocks.{layer}"
        attended = self.attention(layer, f"{name}.attn", self.norm(f"{name}.ln_1", tokens), grid)
        normed = self.norm(f"{name}.ln_2", tokens)
        hidden = self.mlp(layer, f"{name}.mlp.c_fc", f"{name}.mlp.c_proj", normed)
        return tokens + self.scale(f"{name}.ls_1", attended) + self.scale(f"{name}.ls_2", hidden)


class ResidualOfTheNormed(PerceptionTower):
    """The stream goes on from what the MLP's norm gives."""

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        name = f"vision_model.transformer.resblocks.{layer}"
        attended = self.attention(layer, f"{name}.attn", self.norm(f"{name}.ln_1", tokens), grid)
        tokens = tokens + self.scale(f"{name}.ls_1", attended)
        tokens = self.norm(f"{name}.ln_2", tokens)
        hidden = self.mlp(layer, f"{name}.mlp.c_fc", f"{name}.mlp.c_proj", tokens)
        return tokens + self.scale(f"{name}.ls_2", hidden)


class OtherEpsilon(Tower):
    """The epsilon of the other architecture."""

    def __init__(self, config: Any, *rest: Any) -> None:
        other = PERCEPTION_NORM_EPS if config.family == "step3" else STEP3_NORM_EPS
        super().__init__(dataclasses.replace(config, norm_eps=other), *rest)


class _OwnNorm(Tower):
    """Layer norm cut into steps."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        unit = self.unit(x.to(self.wide)).to(self.wide)
        weight, bias = self.affine(name)
        return (unit * weight.to(self.wide) + bias.to(self.wide)).to(x.dtype)

    def unit(self, x: Tensor) -> Tensor:
        """Mean zero and variance one."""
        return F.layer_norm(x, x.shape[-1:], eps=self.config.norm_eps)

    def affine(self, name: str) -> tuple[Tensor, Tensor]:
        """Weight and bias."""
        return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]


class EpsilonOutsideTheRoot(_OwnNorm):
    """Epsilon is added to the deviation, not to the variance."""

    def unit(self, x: Tensor) -> Tensor:
        centred = x - x.mean(dim=-1, keepdim=True)
        deviation = centred.square().mean(dim=-1, keepdim=True).sqrt()
        return centred / (deviation + self.config.norm_eps)


class NoMean(_OwnNorm):
    """RMS norm: the mean stays."""

    def unit(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], eps=self.config.norm_eps)


class SampleVariance(_OwnNorm):
    """The variance is divided by one less than the number of channels."""

    def unit(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=1)
        return (x - mean) * torch.rsqrt(variance + self.config.norm_eps)


class NarrowStatistics(_OwnNorm):
    """Mean and variance are taken in bfloat16 in every model."""

    def unit(self, x: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x.bfloat16(), dim=-1, keepdim=True, correction=0)
        return (x - mean) * torch.rsqrt(variance.to(x.dtype) + self.config.norm_eps)


class StatisticsOfThePicture(_OwnNorm):
    """Mean and variance are those of all tokens of a picture."""

    def unit(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[1:], eps=self.config.norm_eps)


class NoWeight(_OwnNorm):
    """The weight is passed over."""

    def affine(self, name: str) -> tuple[Tensor, Tensor]:
        weight, bias = super().affine(name)
        return torch.ones_like(weight), bias


class NoBias(_OwnNorm):
    """The bias is passed over."""

    def affine(self, name: str) -> tuple[Tensor, Tensor]:
        weight, bias = super().affine(name)
        return weight, torch.zeros_like(bias)


class SwappedNorms(Tower):
    """Attention and MLP have each other's norms."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        other = {"ln_1": "ln_2", "ln_2": "ln_1", "norm1": "norm2", "norm2": "norm1"}
        for role, instead in other.items():
            if name.endswith(role):
                return super().norm(name.removesuffix(role) + instead, x)
        return super().norm(name, x)


class NoFirstNorm(PerceptionTower):
    """The norm before the blocks is skipped."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        return x if name.endswith("ln_pre") else super().norm(name, x)


_placement = partial(tower_fault, kind="norm placement", clause="EN-05")
_epsilon = partial(tower_fault, kind="norm eps", clause="EN-05")
_fault = partial(tower_fault, kind="norms", clause="EN-05")

FAULTS = (
    _placement(NormBefore, "norms: before for after"),
    _placement(NormOfTheSum, "norms: of the sum"),
    _placement(NormAfter, "norms: after for before", source="vllm-rust"),
    _placement(ParallelBranches, "norms: attention and MLP in parallel"),
    _placement(ResidualOfTheNormed, "norms: the residual is normed"),
    _placement(SwappedNorms, "norms: swapped between attention and MLP"),
    _placement(NoFirstNorm, "norms: none before the blocks"),
    _epsilon(OtherEpsilon, "norms: the other family's epsilon", source="sglang, vLLM"),
    _epsilon(EpsilonOutsideTheRoot, "norms: epsilon outside the root"),
    _fault(NoMean, "norms: the mean stays"),
    _fault(SampleVariance, "norms: sample variance"),
    _fault(NarrowStatistics, "norms: statistics in bfloat16", dtypes=PRECISE),
    _fault(StatisticsOfThePicture, "norms: statistics of the whole picture"),
    _fault(NoWeight, "norms: no weight"),
    _fault(NoBias, "norms: no bias"),
)
