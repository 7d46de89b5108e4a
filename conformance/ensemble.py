"""Harmless ways to run the reference: what they differ by is noise."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from reference import ReferenceEncoder
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.stream import signs
from reference.tower import Tower


class _FusedAttention(Tower):
    """Attention by one fused kernel."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)


class _SplitSums(Tower):
    """Every matrix product as the sum of two halves, convolutions as matrix products."""

    def linear(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        half = x.shape[-1] // 2
        total = F.linear(x[..., half:], weight[:, half:]) + F.linear(
            x[..., :half], weight[:, :half]
        )
        return total if bias is None else total + bias

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias")
        kernel = weight.shape[-1]
        columns = F.unfold(x, kernel, stride=stride, padding=padding)
        maps = weight.flatten(1) @ columns
        if bias is not None:
            maps = maps + bias[:, None]
        rows = (x.shape[2] + 2 * padding - kernel) // stride + 1
        folded: Tensor = maps.unflatten(2, (rows, -1))
        return folded


class _NarrowSteps(Tower):
    """Softmax and the scaling of scores rounded to the model's dtype."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-2, -1)) * self.config.head_dim**-0.5
        joined: Tensor = (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)
        return joined


def _encoder(name: str, mixin: type[Tower]) -> type[ReferenceEncoder]:
    step3 = type(f"{name}Step3", (mixin, Step3Tower), {})
    perception = type(f"{name}Perception", (mixin, PerceptionTower), {})
    towers = {"step3": step3, "step3-vl-10b": perception, "step3p7": perception}
    return type(name, (ReferenceEncoder,), {"towers": towers})


# Each is the reference with one step done in another, equally good way.
ENSEMBLE: Mapping[str, type[ReferenceEncoder]] = {
    "fused attention": _encoder("FusedAttention", _FusedAttention),
    "split sums": _encoder("SplitSums", _SplitSums),
    "narrow softmax": _encoder("NarrowSteps", _NarrowSteps),
}


def jittered(tensor: Tensor, dtype: torch.dtype, seed: int) -> Tensor:
    """A float64 tensor moved up or down by half a unit in the last place of a dtype."""
    return tensor * (1 + signs(seed, "jitter", tensor.shape) * (torch.finfo(dtype).eps / 2))
