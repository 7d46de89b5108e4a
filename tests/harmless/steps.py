"""Harmless ways to compute norms, products, convolutions and activations."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.tower import Tower
from tests.harmless.towers import OwnAttention


class ManualNorm(Tower):
    """Layer norm from mean and variance, written out."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        centred = x.to(self.wide) - x.to(self.wide).mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        unit = centred * torch.rsqrt(variance + self.config.norm_eps)
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return (unit * weight.to(self.wide) + bias.to(self.wide)).to(x.dtype)


class NativeNorm(Tower):
    """Layer norm by torch's kernel for the dtype, which keeps statistics in float32."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.layer_norm(x, (x.shape[-1],), weight, bias, self.config.norm_eps)


class LateAffine(Tower):
    """Layer norm rounded to the dtype before its weight and bias."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        unit = F.layer_norm(x.to(self.wide), (x.shape[-1],), eps=self.config.norm_eps).to(x.dtype)
        return unit * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


class SingleNorm(Tower):
    """Layer norm in float32, whatever the dtype."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        shape, eps = (x.shape[-1],), self.config.norm_eps
        return F.layer_norm(x.float(), shape, weight.float(), bias.float(), eps).to(x.dtype)


class DoubleNorm(Tower):
    """Layer norm in float64."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        shape, eps = (x.shape[-1],), self.config.norm_eps
        return F.layer_norm(x.double(), shape, weight.double(), bias.double(), eps).to(x.dtype)


class FoldedNorms(OwnAttention):
    """Weight and bias of the norms inside blocks folded into the matrices behind them."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        if not name.endswith((".ln_1", ".ln_2")):
            return super().norm(name, x)
        return F.layer_norm(x.to(self.wide), (x.shape[-1],), eps=self.config.norm_eps).to(x.dtype)

    def fused(self, name: str) -> tuple[Tensor, Tensor]:
        return self.folded(name.replace(".attn", ".ln_1"), *super().fused(name))

    def linear(self, name: str, x: Tensor) -> Tensor:
        if not name.endswith(".c_fc"):
            return super().linear(name, x)
        norm = name.replace(".mlp.c_fc", ".ln_2")
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.linear(x, *self.folded(norm, weight, bias))

    def folded(self, norm: str, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """A matrix and its bias that do the norm's affine part too, rounded to the dtype."""
        scale, shift = (self.weights[f"{norm}.{part}"].double() for part in ("weight", "bias"))
        moved = bias.double() + weight.double() @ shift
        return (weight.double() * scale).to(weight.dtype), moved.to(bias.dtype)


class FoldedLayerScale(OwnAttention):
    """Layer scale folded into the matrices before it."""

    def scale(self, name: str, x: Tensor) -> Tensor:  # noqa: ARG002
        return x

    def linear(self, name: str, x: Tensor) -> Tensor:
        if not name.endswith((".out_proj", ".c_proj")) or self.config.layer_scale is None:
            return super().linear(name, x)
        block, _, part = name.rpartition(".attn." if "out_proj" in name else ".mlp.")
        gamma = self.weights[f"{block}.ls_{1 if part == 'out_proj' else 2}.gamma"]
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return F.linear(x, weight * gamma[:, None], bias * gamma)


class WideStream(OwnAttention):
    """Tokens between the steps in float32, the steps themselves in the dtype."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().embed(tokens, grid).to(self.wide)

    def project(self, name: str, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().project(name, tokens.to(self.narrow))

    def linear(self, name: str, x: Tensor) -> Tensor:
        return super().linear(name, x.to(self.narrow))

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        return super().convolve(name, x.to(self.narrow), stride=stride, padding=padding)

    @property
    def narrow(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.weights["vit_large_projector.weight"].dtype


class FoldedBias(Tower):
    """Biases as one more column of their matrix."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        if bias is None:
            return F.linear(x, weight)
        longer = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
        return F.linear(longer, torch.cat([weight, bias[:, None]], dim=1))


class LinearAsConvolution(Tower):
    """Matrix products as convolutions of kernel one."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        maps = F.conv2d(x.transpose(1, 2)[..., None], weight[:, :, None, None], bias)
        return maps[..., 0].transpose(1, 2)


class ChannelsInReverse(Tower):
    """The sums of matrix products in the opposite order."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        return F.linear(x.flip(-1), weight.flip(-1), bias)


class LateBias(Tower):
    """Every product rounded before its bias is added, in convolutions too."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        bias = self.weights.get(f"{name}.bias")
        product = x @ self.weights[f"{name}.weight"].T
        return product if bias is None else product + bias

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        bias = self.weights.get(f"{name}.bias")
        maps = F.conv2d(x, self.weights[f"{name}.weight"], stride=stride, padding=padding)
        return maps if bias is None else maps + bias[:, None, None]


class UnfoldedConvolutions(Tower):
    """Convolutions as unfolding and a matrix product."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        kernel = weight.shape[-1]
        columns = F.unfold(x, kernel, stride=stride, padding=padding)
        maps = F.linear(columns.transpose(1, 2), weight.flatten(1), bias).transpose(1, 2)
        return maps.unflatten(2, ((x.shape[2] + 2 * padding - kernel) // stride + 1, -1))


class EinsumConvolutions(Tower):
    """Convolutions as one einsum over windows."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        kernel = weight.shape[-1]
        windows = F.pad(x, [padding] * 4).unfold(2, kernel, stride).unfold(3, kernel, stride)
        maps = torch.einsum("nchwij,ocij->nohw", windows, weight)
        return maps if bias is None else maps + bias[:, None, None]


class ChannelsLast(Tower):
    """Convolutions with channels last in memory."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        x, weight = (t.contiguous(memory_format=torch.channels_last) for t in (x, weight))
        return F.conv2d(x, weight, bias, stride=stride, padding=padding)


class WrittenOutActivation(Tower):
    """`gelu` by erf and `quick_gelu` by exp, rounded at each step."""

    def activate(self, x: Tensor) -> Tensor:
        if self.config.hidden_act == "quick_gelu":
            return x / (1 + torch.exp(-1.702 * x))
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


class SingleActivation(Tower):
    """Activations in float32, whatever the dtype."""

    def activate(self, x: Tensor) -> Tensor:
        return super().activate(x.float()).to(x.dtype)


class Compiled(Tower):
    """Norms and activations traced by torch.compile."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        rows = x.flatten(0, 1).to(self.wide)
        normed = compiled(normalised)(rows, weight, bias, self.config.norm_eps)
        return normed.to(x.dtype).view_as(x)

    def activate(self, x: Tensor) -> Tensor:
        if self.config.hidden_act != "quick_gelu":
            return super().activate(x)
        return compiled(quick_gelu)(x.flatten()).view_as(x)


def normalised(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Layer norm over the last dimension, written out."""
    variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(variance + eps) * weight + bias


def quick_gelu(x: Tensor) -> Tensor:
    """The activation `quick_gelu`."""
    return x * torch.sigmoid(1.702 * x)


@cache
def compiled(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function compiled for any shape; the backend needs no C++ compiler."""
    return torch.compile(function, backend="aot_eager", dynamic=True)
