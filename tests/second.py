"""The Step3-VL vision encoder a second time: einsum and explicit loops, one image at a time.

Written from the contract without sight of the reference, to be compared with it. Nothing comes from
`torch.nn`: convolutions, norms, softmax, resampling and rotary are spelled out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from reference import EncoderConfig, ImageItem

NO_PATCHES = "Step3-VL image item has num_patches > 0 but no patch_pixel_values."

# From the names of a `step3` checkpoint to those of the other families, and both without prefix.
RENAMES = (
    ("vision_model.", ""),
    ("embeddings.patch_embedding", "conv1"),
    ("embeddings.class_embedding", "class_embedding"),
    ("embeddings.position_embedding.weight", "positional_embedding"),
    ("transformer.layers", "transformer.resblocks"),
    ("layer_norm", "ln_"),
    ("self_attn.qkv_proj.", "attn.in_proj_"),
    ("self_attn.", "attn."),
    ("mlp.fc1", "mlp.c_fc"),
    ("mlp.fc2", "mlp.c_proj"),
    ("vit_downsampler.", "vit_downsampler1."),
)


class SecondEncoder:
    """Step3-VL by einsum and explicit loops."""

    def __init__(
        self,
        config: EncoderConfig,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.config = config
        self.step3 = config.family == "step3"
        self.device, self.dtype = torch.device(device), dtype
        self.weights = {renamed(name): self._own(weight) for name, weight in weights.items()}

    @torch.no_grad()
    def get_image_feature(self, items: Sequence[ImageItem]) -> Tensor:
        """Rows of every image, its patches before its thumbnail: (sum(count*P + T), D).

        Raises:
            ValueError: `num_patches` is missing, or counts patches that are not there.
        """
        rows = [torch.empty(0, self.config.text_width, dtype=self.dtype, device=self.device)]
        for item in items:
            counts = read_counts(item.model_specific_data.get("num_patches"))
            patches = item.model_specific_data.get("patch_pixel_values")
            patches = () if patches is None else patches
            if any(counts) and len(patches) == 0:
                raise ValueError(NO_PATCHES)
            start = 0
            for thumbnail, count in zip(item.feature, counts, strict=True):
                rows += [self._image(x) for x in (*patches[start : start + count], thumbnail)]
                start += count
        return torch.cat(rows)

    @torch.no_grad()
    def encode(self, pixels: Tensor) -> Tensor:
        """(n, 3, H, W) -> (n, rows, D), for n of 1 or more."""
        return torch.stack([self._image(image) for image in pixels])

    def _own(self, tensor: Tensor) -> Tensor:
        """The tensor in the encoder's dtype, on its device."""
        return tensor.detach().to(self.device, self.dtype)

    def _image(self, pixels: Tensor) -> Tensor:
        """(3, H, W) -> (rows, D)."""
        cells = self._convolve("conv1", self._own(pixels), self.config.patch_size, 0, self.step3)
        _, height, width = cells.shape
        tokens = self._embed(cells)
        phases = self._phases(height, width) if self.config.rotary else None
        for index in range(self.config.layers):
            tokens = self._block(f"transformer.resblocks.{index}", tokens, phases)
        if self.config.ln_post:
            tokens = self._norm("ln_post", tokens)
        square = tokens[-height * width :].reshape(height, width, self.config.width)
        return self._project(torch.einsum("hwc->chw", square))

    def _embed(self, cells: Tensor) -> Tensor:
        """(width, h, w) -> what enters the first block: (class tokens + h*w, width)."""
        tokens = torch.einsum("chw->hwc", cells).reshape(-1, self.config.width)
        if self.config.class_token:
            tokens = torch.cat([self.weights["class_embedding"].reshape(1, -1), tokens])
        if self.config.positions:
            tokens = tokens + self._positions(*cells.shape[1:])
        if self.step3:
            tokens = torch.cat([tokens[:1]] * 3 + [tokens])
        return self._norm("ln_pre", tokens) if self.config.ln_pre else tokens

    def _positions(self, height: int, width: int) -> Tensor:
        """The position table resampled to the grid, a class row unchanged: ([1 +] h*w, width)."""
        native, first = self.config.grid, int(self.config.class_token)
        resampling = bicubic if self.step3 else bilinear
        table = self.weights["positional_embedding"]
        square = table[first:].reshape(native, native, self.config.width)
        down, across = (self._own(resampling(native, side)) for side in (height, width))
        cells = torch.einsum("yh,xw,hwc->yxc", down, across, square)
        return torch.cat([table[:first], cells.reshape(-1, self.config.width)])

    def _phases(self, height: int, width: int) -> Tensor:
        """Unit complex numbers that queries and keys are turned by: (tokens, head_dim/2)."""
        half, first = self.config.head_dim // 2, int(self.config.class_token)
        places = [(0, 0)] * first
        places += [(row + first, col + first) for row in range(height) for col in range(width)]
        speeds = [self.config.rotary_base ** (-even / half) for even in range(0, half, 2)]
        angles = [[col * s for s in speeds] + [row * s for s in speeds] for row, col in places]
        turns = torch.tensor(angles, dtype=torch.float64)
        return torch.complex(self._own(torch.cos(turns)), self._own(torch.sin(turns)))

    def _block(self, block: str, x: Tensor, phases: Tensor | None) -> Tensor:
        """One transformer block: (tokens, width) -> (tokens, width)."""
        x = x + self._branch(block, 1, x, lambda y: self._attend(block, y, phases))
        return x + self._branch(block, 2, x, lambda y: self._mlp(block, y))

    def _branch(self, block: str, which: int, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """What a half of a block adds: LN(f(x)) in `step3`, else f(LN(x)) with layer scale."""
        norm = f"{block}.ln_{which}"
        change = self._norm(norm, f(x)) if self.step3 else f(self._norm(norm, x))
        scaled = self.config.layer_scale is not None
        return change * self.weights[f"{block}.ls_{which}.gamma"] if scaled else change

    def _attend(self, block: str, x: Tensor, phases: Tensor | None) -> Tensor:
        """Self-attention, head by head: (tokens, width) -> (tokens, width)."""
        width, size = self.config.width, self.config.head_dim
        weight = self.weights[f"{block}.attn.in_proj_weight"]
        bias = self.weights[f"{block}.attn.in_proj_bias"]
        heads = []
        for start in range(0, width, size):
            spans = [slice(part + start, part + start + size) for part in (0, width, 2 * width)]
            q, k, v = (torch.einsum("ti,oi->to", x, weight[s]) + bias[s] for s in spans)
            if phases is not None:
                q, k = rotate(q, phases), rotate(k, phases)
            shares = softmax(torch.einsum("qc,kc->qk", q, k) / math.sqrt(size))
            heads.append(torch.einsum("qk,kc->qc", shares, v))
        return self._linear(f"{block}.attn.out_proj", torch.cat(heads, dim=1))

    def _mlp(self, block: str, x: Tensor) -> Tensor:
        """(tokens, width) -> (tokens, width)."""
        inner = self._linear(f"{block}.mlp.c_fc", x)
        inner = activate(inner, quick=self.config.hidden_act == "quick_gelu")
        return self._linear(f"{block}.mlp.c_proj", inner)

    def _project(self, cells: Tensor) -> Tensor:
        """Downsamplers and projector: (width, h, w) -> (rows, D)."""
        pad = 0 if self.step3 else 1
        cells = self._convolve("vit_downsampler1", cells, self.config.downsampler_stride, pad)
        cells = self._convolve("vit_downsampler2", cells, stride=2, pad=1)
        rows = torch.einsum("chw->hwc", cells).reshape(-1, cells.shape[0])
        return self._linear("vit_large_projector", rows, self.config.projector_bias)

    def _linear(self, name: str, x: Tensor, bias: bool = True) -> Tensor:
        """(tokens, in) -> (tokens, out)."""
        out = torch.einsum("ti,oi->to", x, self.weights[f"{name}.weight"])
        return out + self.weights[f"{name}.bias"] if bias else out

    def _norm(self, name: str, x: Tensor) -> Tensor:
        """Layer norm over the last dimension."""
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        unit = centred / torch.sqrt(variance + self.config.norm_eps)
        return unit * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def _convolve(self, name: str, x: Tensor, stride: int, pad: int, bias: bool = True) -> Tensor:
        """(in, H, W) -> (out, h, w), tap by tap of the square kernel."""
        weight = self.weights[f"{name}.weight"]
        side, (channels, height, width) = weight.shape[-1], x.shape
        padded = x.new_zeros(channels, height + 2 * pad, width + 2 * pad)
        padded[:, pad : pad + height, pad : pad + width] = x
        h, w = ((extent - side) // stride + 1 for extent in padded.shape[1:])
        out = x.new_zeros(len(weight), h, w)
        for i in range(side):
            for j in range(side):
                seen = padded[:, i::stride, j::stride][:, :h, :w]
                out += torch.einsum("oc,chw->ohw", weight[:, :, i, j], seen)
        return out + self.weights[f"{name}.bias"][:, None, None] if bias else out


def renamed(name: str) -> str:
    """The published name of a weight in the one vocabulary used here."""
    for old, new in RENAMES:
        name = name.replace(old, new)
    return name


def read_counts(raw: Any) -> list[int]:
    """The counts in any of the accepted forms, row-major; ValueError where there are none."""
    if raw is None:
        raise ValueError("Step3-VL image item is missing num_patches.")
    if isinstance(raw, Tensor | np.ndarray | np.generic):
        raw = raw.reshape(-1).tolist()
    return [raw] if isinstance(raw, int) else [int(count) for count in raw]


def softmax(x: Tensor) -> Tensor:
    """Over the last dimension."""
    powers = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


def activate(x: Tensor, quick: bool) -> Tensor:
    """GELU, exact or as x * sigmoid(1.702 x)."""
    return x / (1 + torch.exp(-1.702 * x)) if quick else x * (1 + torch.erf(x / 2**0.5)) / 2


def rotate(x: Tensor, phases: Tensor) -> Tensor:
    """Turn neighbouring channels, as complex numbers, by the phases: (tokens, head_dim)."""
    turned = torch.complex(x[:, 0::2], x[:, 1::2]) * phases
    return torch.stack([turned.real, turned.imag], dim=-1).reshape(x.shape)


def bilinear(old: int, new: int) -> Tensor:
    """Weights (new, old) of a linear resampling at cell centres, without antialias."""
    centres = [min(max((index + 0.5) * old / new - 0.5, 0), old - 1) for index in range(new)]
    rows = [[max(0, 1 - abs(x - centre)) for x in range(old)] for centre in centres]
    return torch.tensor(rows, dtype=torch.float64)


def bicubic(old: int, new: int) -> Tensor:
    """Weights (new, old) of an antialiased cubic resampling: the kernel widens to shrink."""
    centres = [(index + 0.5) * old / new - 0.5 for index in range(new)]
    spread = max(old / new, 1)
    rows = [[keys((x - centre) / spread) for x in range(old)] for centre in centres]
    weights = torch.tensor(rows, dtype=torch.float64)
    return weights / weights.sum(dim=1, keepdim=True)


def keys(x: float, a: float = -0.5) -> float:
    """Keys' cubic kernel, with the a of Pillow and of torch's antialiased bicubic."""
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return a * (((x - 5) * x + 8) * x - 4) if x < 2 else 0.0
