"""What the two vision towers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from reference.config import EncoderConfig

Probe = Callable[[str, Tensor], None]


def no_probe(stage: str, value: Tensor) -> None:
    """Record nothing."""


class Tower:
    """A vision transformer, its downsamplers and its projector.

    Every step is a method of its own, in the order of the contract, and every weight is read
    under its published name.

    Args:
        config: what to compute.
        weights: every vision tensor under its published name, in the dtype and on the device to
            compute with.
        probe: called with the name and value of each stage, in order: `patch_embedding`,
            `embeddings`, `block.0` ..., `tower`, `downsampler.0`, `downsampler.1`, `projector`;
            and of the intermediate values `block.N.scores` (unscaled q.k) and `block.N.hidden`.
    """

    def __init__(
        self, config: EncoderConfig, weights: Mapping[str, Tensor], probe: Probe = no_probe
    ) -> None:
        self.config = config
        self.weights = weights
        self.probe = probe

    def __call__(self, pixels: Tensor) -> Tensor:
        """Encode pictures of one size: `(n, 3, H, W)` to `(n, rows, D)`."""
        cells = self.embed_patches(pixels)
        self.probe("patch_embedding", cells)
        grid = (cells.shape[2], cells.shape[3])
        tokens = self.embed(cells.flatten(2).transpose(1, 2), grid)
        self.probe("embeddings", tokens)
        for layer in range(self.config.layers):
            tokens = self.block(layer, tokens, grid)
            self.probe(f"block.{layer}", tokens)
        tokens = self.finish(tokens)
        self.probe("tower", tokens)
        maps = tokens.transpose(1, 2).unflatten(2, grid)
        rows = self.downsample(maps).flatten(2).transpose(1, 2)
        result = self.linear("vit_large_projector", rows)
        self.probe("projector", result)
        return result

    # The architectures differ in these.

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """One vector per cell: `(n, 3, H, W)` to `(n, width, rows, columns)` (EN-02)."""
        raise NotImplementedError

    def embed(self, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """Add positions and class tokens: `(n, cells, width)` to `(n, tokens, width)`."""
        raise NotImplementedError

    def block(self, layer: int, tokens: Tensor, grid: tuple[int, int]) -> Tensor:
        """One transformer block, `(n, tokens, width)` to the same."""
        raise NotImplementedError

    def finish(self, tokens: Tensor) -> Tensor:
        """Drop the class tokens: `(n, tokens, width)` to `(n, cells, width)` (EN-04)."""
        raise NotImplementedError

    def downsample(self, maps: Tensor) -> Tensor:
        """Two convolutions, nothing between: `(n, width, r, c)` to `(n, channels, r', c')`."""
        raise NotImplementedError

    # Steps that both are made of.

    @property
    def wide(self) -> torch.dtype:
        """Float32, or the towers' own dtype if that is wider."""
        return torch.promote_types(self.weights["vit_large_projector.weight"].dtype, torch.float32)

    def linear(self, name: str, x: Tensor) -> Tensor:
        """`x @ weight.T + bias`, the bias if there is one."""
        return F.linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        """A 2-d convolution, with a bias if there is one."""
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        return F.conv2d(x, weight, bias, stride=stride, padding=padding)

    def norm(self, name: str, x: Tensor) -> Tensor:
        """Layer norm over channels, computed in float32 or better (EN-05)."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        normed = F.layer_norm(
            x.to(self.wide),
            (x.shape[-1],),
            weight.to(self.wide),
            bias.to(self.wide),
            self.config.norm_eps,
        )
        return normed.to(x.dtype)

    def activate(self, x: Tensor) -> Tensor:
        """`quick_gelu` is x*sigmoid(1.702x), `gelu` the exact one (EN-09)."""
        if self.config.hidden_act == "quick_gelu":
            return x * torch.sigmoid(1.702 * x)
        return F.gelu(x)

    def mlp(self, layer: int, first: str, second: str, x: Tensor) -> Tensor:
        """Two linear layers and the activation between them."""
        hidden = self.linear(first, x)
        self.probe(f"block.{layer}.hidden", hidden)
        return self.linear(second, self.activate(hidden))

    def split_heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """`(n, tokens, 3*width)` to queries, keys and values, each `(n, heads, tokens, d)`."""
        heads = qkv.unflatten(-1, (3, self.config.heads, self.config.head_dim))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        return query, key, value

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Softmax attention over all tokens of a picture (EN-08), heads joined again."""
        scores = (query * self.config.head_dim**-0.5) @ key.transpose(-2, -1)
        weights = scores.to(self.wide).softmax(dim=-1).to(value.dtype)
        joined: Tensor = (weights @ value).transpose(1, 2).flatten(2)
        return joined

    def probe_scores(self, layer: int, query: Tensor, key: Tensor) -> None:
        """Record the unscaled q.k, which an implementation may form before it scales (EN-12)."""
        if self.probe is not no_probe:
            self.probe(f"block.{layer}.scores", query @ key.transpose(-2, -1))
