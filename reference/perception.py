"""The vision tower of `step3-vl-10b` and `step3p7` (`PerceptionEncoder`)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.rotary import rotary_angles, rotate
from reference.tower import Tower


class PerceptionTower(Tower):
    """Pre-norm blocks with layer scale, a learned position table and 2-d rotary."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """A convolution without bias whose stride is its kernel (EN-02)."""
        name, stride = "vision_model.conv1", self.config.patch_size
        return self.convolve(name, pixels, stride=stride, padding=0)

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Class token if configured, positions, and the first norm if configured (EN-04)."""
        if self.config.class_token:
            class_token = self.weights["vision_model.class_embedding"]
            tokens = torch.cat([class_token.expand(len(tokens), 1, -1), tokens], dim=1)
        if self.config.positions:
            tokens = tokens + self.positions(grid)
        return self.norm("vision_model.ln_pre", tokens) if self.config.ln_pre else tokens

    def positions(self, grid: tuple[int, int]) -> Tensor:
        """The position table for a grid, `(tokens, width)`; the class token's row stays as it is.

        Off the native grid it is resampled bilinearly without antialiasing (EN-03).
        """
        table = self.weights["vision_model.positional_embedding"]
        native, classes = self.config.grid, int(self.config.class_token)
        if grid == (native, native):
            return table
        picture = table[classes:].unflatten(0, (native, native)).permute(2, 0, 1)[None]
        resampled = F.interpolate(
            picture, size=grid, mode="bilinear", antialias=False, align_corners=False
        )
        return torch.cat([table[:classes], resampled[0].flatten(1).T])

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """`x + scale * f(LN(x))`, for attention and then for the MLP (EN-05, EN-06)."""
        name = f"vision_model.transformer.resblocks.{layer}"
        normed = self.norm(f"{name}.ln_1", tokens)
        attended = self.attention(layer, f"{name}.attn", normed, grid)
        tokens = tokens + self.scale(f"{name}.ls_1", attended)
        normed = self.norm(f"{name}.ln_2", tokens)
        hidden = self.mlp(layer, f"{name}.mlp.c_fc", f"{name}.mlp.c_proj", normed)
        return tokens + self.scale(f"{name}.ls_2", hidden)

    def scale(self, name: str, x: Tensor) -> Tensor:
        """Multiply each channel by its own gamma, in configurations that have it (EN-06)."""
        return x if self.config.layer_scale is None else x * self.weights[f"{name}.gamma"]

    def attention(self, layer: int, name: str, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Self-attention with rotated queries and keys, `(n, tokens, width)` to the same."""
        fused = F.linear(
            tokens, self.weights[f"{name}.in_proj_weight"], self.weights[f"{name}.in_proj_bias"]
        )
        query, key, value = self.split_heads(fused)
        if self.config.rotary:
            angles = self.angles(grid)
            query, key = rotate(query, angles), rotate(key, angles)
        self.probe_scores(layer, query, key)
        return self.linear(f"{name}.out_proj", self.attend(query, key, value))

    def angles(self, grid: tuple[int, int]) -> Tensor:
        """Rotary angles of every token, `(tokens, head_dim)`, in float32 or better (EN-07)."""
        config = self.config
        device = self.weights["vit_large_projector.weight"].device
        return rotary_angles(
            grid,
            config.head_dim,
            base=config.rotary_base,
            class_token=config.class_token,
            dtype=self.wide,
            device=device,
        )

    def finish(self, tokens: Tensor) -> Tensor:
        """The last norm if configured, then drop the class token if there is one (EN-04)."""
        if self.config.ln_post:
            tokens = self.norm("vision_model.ln_post", tokens)
        return tokens[:, int(self.config.class_token) :]

    def downsample(self, maps: Tensor) -> Tensor:
        """Twice kernel 3, stride 2, padding 1 (EN-10)."""
        for index in (1, 2):
            maps = self.convolve(f"vision_model.vit_downsampler{index}", maps, stride=2, padding=1)
            self.probe(f"downsampler.{index - 1}", maps)
        return maps
