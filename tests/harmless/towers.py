"""Harmless ways to compute a tower: each does one step of the reference differently."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from reference.rotary import rotate
from reference.tower import Tower
from tests.second import bicubic, bilinear

# Attention, once queries, keys and values are there.


class AnyFusedAttention(Tower):
    """Attention by the kernel that torch prefers."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class MathAttention(AnyFusedAttention):
    """Attention by torch's fallback."""

    backend = SDPBackend.MATH

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with sdpa_kernel(self.backend):
            return super().attend(query, key, value)


class FlashAttention(MathAttention):
    """Attention by the flash kernel of the CPU."""

    backend = SDPBackend.FLASH_ATTENTION


class NarrowSoftmax(Tower):
    """Scores and softmax rounded to the model's dtype."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)
        return (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)


class SingleSoftmax(Tower):
    """Scores, softmax and their product with the values in float32, whatever the dtype."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        wide = super().attend(query.float(), key.float(), value.float())
        return wide.to(value.dtype)


class ScaledScores(Tower):
    """The scale applied to scores rather than to queries."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-2, -1)) * self.config.head_dim**-0.5
        weights = scores.to(self.wide).softmax(dim=-1).to(value.dtype)
        return (weights @ value).transpose(1, 2).flatten(2)


class SharedScale(Tower):
    """The root of the scale applied to queries and to keys."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        root = self.config.head_dim**-0.25
        scores = (query * root) @ (key * root).transpose(-2, -1)
        weights = scores.to(self.wide).softmax(dim=-1).to(value.dtype)
        return (weights @ value).transpose(1, 2).flatten(2)


class PaddedHeads(Tower):
    """Heads padded with zeros to a multiple of 32 channels, the scale still that of the head."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        size = self.config.head_dim
        padded = [F.pad(x, (0, -size % 32)) for x in (query, key, value)]
        joined = F.scaled_dot_product_attention(*padded, scale=size**-0.5)
        return joined[..., :size].transpose(1, 2).flatten(2)


class PaddedTokens(Tower):
    """Tokens padded to a multiple of 16, the padding masked."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        tokens = query.shape[2]
        padded = [F.pad(x, (0, 0, 0, -tokens % 16)) for x in (query, key, value)]
        seen = torch.arange(padded[0].shape[2], device=query.device) < tokens
        joined = F.scaled_dot_product_attention(*padded, attn_mask=seen[None, None, None])
        return joined[:, :, :tokens].transpose(1, 2).flatten(2)


class TiledSoftmax(Tower):
    """Keys in tiles of five with a running maximum and sum, divided at the end."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scale = self.config.head_dim**-0.5 * math.log2(math.e)
        highest = query.new_full((*query.shape[:3], 1), -math.inf, dtype=self.wide)
        total = torch.zeros_like(highest)
        summed = torch.zeros_like(value, dtype=self.wide)
        for keys, values in zip(key.split(5, dim=2), value.split(5, dim=2), strict=True):
            scores = (query @ keys.transpose(-2, -1)).to(self.wide) * scale
            now = torch.maximum(highest, scores.amax(dim=-1, keepdim=True))
            powers, kept = torch.exp2(scores - now), torch.exp2(highest - now)
            total = total * kept + powers.sum(dim=-1, keepdim=True)
            summed = summed * kept + (powers.to(value.dtype) @ values).to(self.wide)
            highest = now
        return (summed / total).to(value.dtype).transpose(1, 2).flatten(2)


class KeysInReverse(Tower):
    """The sums over keys in the opposite order."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return super().attend(query, key.flip(2), value.flip(2))


# The whole of attention.


class OwnAttention(Tower):
    """Both architectures' attention as one method, cut into steps."""

    def attention(
        self,
        layer: int,  # noqa: ARG002
        name: str,
        tokens: Tensor,
        grid: tuple[int, int] | None = None,
    ) -> Tensor:
        query, key, value = self.project(name, tokens)
        if self.config.rotary:
            query, key = self.turn(query, key, grid)
        return self.leave(name, self.attend(query, key, value))

    def fused(self, name: str) -> tuple[Tensor, Tensor]:
        """Weight and bias that make queries, keys and values at once."""
        joint = f"{name}.qkv_proj." if self.config.family == "step3" else f"{name}.in_proj_"
        return self.weights[f"{joint}weight"], self.weights[f"{joint}bias"]

    def project(self, name: str, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each `(n, heads, tokens, head_dim)`."""
        return self.split_heads(F.linear(tokens, *self.fused(name)))

    def turn(self, query: Tensor, key: Tensor, grid: Any) -> tuple[Tensor, Tensor]:
        """Queries and keys with their rotary."""
        angles = self.angles(grid)
        return rotate(query, angles), rotate(key, angles)

    def leave(self, name: str, joined: Tensor) -> Tensor:
        """The last product of attention."""
        return self.linear(f"{name}.out_proj", joined)


class SplitProjections(OwnAttention):
    """Queries, keys and values each by a matrix of their own."""

    def project(self, name: str, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = zip(*(part.chunk(3) for part in self.fused(name)), strict=True)
        heads = (self.config.heads, self.config.head_dim)
        query, key, value = (
            F.linear(tokens, weight.contiguous(), bias).unflatten(-1, heads).transpose(1, 2)
            for weight, bias in parts
        )
        return query, key, value


class ComplexRotary(OwnAttention):
    """Rotary as a product of complex numbers."""

    def turn(self, query: Tensor, key: Tensor, grid: Any) -> tuple[Tensor, Tensor]:
        angles = self.angles(grid)[:, ::2]
        turns = torch.polar(torch.ones_like(angles), angles)

        def turned(x: Tensor) -> Tensor:
            pairs = torch.view_as_complex(x.to(self.wide).unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)

        return turned(query), turned(key)


class HalfSplitRotary(OwnAttention):
    """Queries and keys stored with even channels first, and rotary by halves of a head."""

    def fused(self, name: str) -> tuple[Tensor, Tensor]:
        size = self.config.head_dim
        order = torch.cat([torch.arange(0, size, 2), torch.arange(1, size, 2)])
        heads = torch.arange(2 * self.config.heads)[:, None] * size
        kept = torch.arange(2 * self.config.width, 3 * self.config.width)
        rows = torch.cat([(heads + order).flatten(), kept])
        weight, bias = super().fused(name)
        return weight[rows.to(weight.device)], bias[rows.to(bias.device)]

    def turn(self, query: Tensor, key: Tensor, grid: Any) -> tuple[Tensor, Tensor]:
        angles = self.angles(grid)[:, ::2].repeat(1, 2)

        def turned(x: Tensor) -> Tensor:
            wide = x.to(self.wide)
            first, second = wide.chunk(2, dim=-1)
            across = torch.cat([-second, first], dim=-1)
            return (wide * angles.cos() + across * angles.sin()).to(x.dtype)

        return turned(query), turned(key)


class SingleRotary(OwnAttention):
    """Angles and turning in float32, whatever the dtype."""

    def turn(self, query: Tensor, key: Tensor, grid: Any) -> tuple[Tensor, Tensor]:
        angles = self.angles(grid).float()
        return rotate(query, angles), rotate(key, angles)


class NarrowRotary(OwnAttention):
    """Angles in float32, their cosines and sines and the turning rounded to the dtype."""

    def turn(self, query: Tensor, key: Tensor, grid: Any) -> tuple[Tensor, Tensor]:
        angles = self.angles(grid)
        cosine, sine = angles.cos().to(query.dtype), angles.sin().to(query.dtype)

        def turned(x: Tensor) -> Tensor:
            across = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
            return x * cosine + across * sine

        return turned(query), turned(key)


class TensorParallel(OwnAttention):
    """Heads and hidden channels on two ranks, whose results are summed."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        first = self.config.heads // 2
        ranks = (slice(0, first), slice(first, None))
        found = [
            super(TensorParallel, self).attend(query[:, r], key[:, r], value[:, r]) for r in ranks
        ]
        return torch.cat(found, dim=2)

    def leave(self, name: str, joined: Tensor) -> Tensor:
        return self.rows_in_parallel(
            f"{name}.out_proj", joined, self.config.heads // 2 * self.config.head_dim
        )

    def mlp(self, layer: int, first: str, second: str, x: Tensor) -> Tensor:  # noqa: ARG002
        half = self.config.mlp_width // 2
        weight, bias = self.weights[f"{first}.weight"], self.weights[f"{first}.bias"]
        ranks = (slice(0, half), slice(half, None))
        hidden = [self.activate(F.linear(x, weight[r], bias[r])) for r in ranks]
        return self.rows_in_parallel(second, torch.cat(hidden, dim=-1), half)

    def rows_in_parallel(self, name: str, x: Tensor, first: int) -> Tensor:
        """A matrix product whose inner dimension is cut in two."""
        weight = self.weights[f"{name}.weight"]
        one = F.linear(x[..., :first], weight[:, :first])
        return one + F.linear(x[..., first:], weight[:, first:]) + self.weights[f"{name}.bias"]


class OneClassToken(Tower):
    """The class token of `step3` once, its weight in attention fourfold."""

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        return super().embed(tokens, grid)[:, 3:]

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = ((query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)).to(self.wide)
        times = torch.zeros(key.shape[2], dtype=self.wide, device=key.device)
        times[0] = math.log(4)
        weights = (scores + times).softmax(dim=-1).to(value.dtype)
        return (weights @ value).transpose(1, 2).flatten(2)

    def finish(self, tokens: Tensor) -> Tensor:
        return tokens[:, 1:]


class TabulatedPositions(Tower):
    """The position table resampled by two matrices made for the grid, in float64."""

    def positions(self, grid: tuple[int, int]) -> Tensor:
        step3, native = self.config.family == "step3", self.config.grid
        first = int(self.config.class_token)
        name = "embeddings.position_embedding.weight" if step3 else "positional_embedding"
        table = self.weights[f"vision_model.{name}"]
        resampling = bicubic if step3 else bilinear
        down, across = (resampling(native, side).to(table.device) for side in grid)
        square = table[first:].double().unflatten(0, (native, native))
        cells = torch.einsum("yh,xw,hwc->yxc", down, across, square).flatten(0, 1)
        return torch.cat([table[:first], cells.to(table.dtype)])
