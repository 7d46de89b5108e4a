"""The vision tower of `step3` (321B)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.tower import Tower

# sglang 0.5.23, srt/models/step3_vl.py: the class token stands four times, so that the number of
# tokens suits tensor parallelism, and all four are dropped after the blocks.
CLASS_TOKENS = 4


class Step3Tower(Tower):
    """Post-norm blocks, four class tokens, a learned position table and no rotary."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """A convolution with bias whose stride is its kernel (EN-02)."""
        name, stride = "vision_model.embeddings.patch_embedding", self.config.patch_size
        return self.convolve(name, pixels, stride=stride, padding=0)

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Class token in front, positions added, then the class token four times (EN-04)."""
        class_token = self.weights["vision_model.embeddings.class_embedding"]
        tokens = torch.cat([class_token.expand(len(tokens), 1, -1), tokens], dim=1)
        tokens = tokens + self.positions(grid)
        return torch.cat([tokens[:, :1].expand(-1, CLASS_TOKENS, -1), tokens[:, 1:]], dim=1)

    def positions(self, grid: tuple[int, int]) -> Tensor:
        """The position table for a grid, `(1 + cells, width)`; row 0 is the class token's.

        Off the native grid it is resampled bicubically with antialiasing, in float32 or better
        (EN-03).
        """
        table = self.weights["vision_model.embeddings.position_embedding.weight"]
        native = self.config.grid
        if grid == (native, native):
            return table
        picture = table[1:].unflatten(0, (native, native)).permute(2, 0, 1)[None]
        resampled = F.interpolate(
            picture.to(self.wide), size=grid, mode="bicubic", antialias=True, align_corners=False
        )
        return torch.cat([table[:1], resampled[0].flatten(1).T.to(table.dtype)])

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:  # noqa: ARG002
        """`x + LN(f(x))`, for attention and then for the MLP (EN-05)."""
        name = f"vision_model.transformer.layers.{layer}"
        attended = self.attention(layer, f"{name}.self_attn", tokens)
        tokens = tokens + self.norm(f"{name}.layer_norm1", attended)
        hidden = self.mlp(layer, f"{name}.mlp.fc1", f"{name}.mlp.fc2", tokens)
        return tokens + self.norm(f"{name}.layer_norm2", hidden)

    def attention(self, layer: int, name: str, tokens: Tensor) -> Tensor:
        """Self-attention without rotary, `(n, tokens, width)` to the same."""
        query, key, value = self.split_heads(self.linear(f"{name}.qkv_proj", tokens))
        self.probe_scores(layer, query, key)
        return self.linear(f"{name}.out_proj", self.attend(query, key, value))

    def finish(self, tokens: Tensor) -> Tensor:
        """Drop all four class tokens (EN-04)."""
        return tokens[:, CLASS_TOKENS:]

    def downsample(self, maps: Tensor) -> Tensor:
        """Kernel 2 with the configured stride, then kernel 3, stride 2, padding 1 (EN-10)."""
        stride = self.config.downsampler_stride
        maps = self.convolve("vit_downsampler", maps, stride=stride, padding=0)
        self.probe("downsampler.0", maps)
        maps = self.convolve("vit_downsampler2", maps, stride=2, padding=1)
        self.probe("downsampler.1", maps)
        return maps
