"""Faults of the patch embedding."""

# ruff: noqa: D102 - the methods are the reference's, which says what they do.

from __future__ import annotations

from functools import partial

from torch import Tensor
from torch.nn import functional as F

from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.faults.fault import PRECISE, tower_fault


class BlueFirst(Tower):
    """Channels are read as blue, green, red."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels.flip(1))


class TransposedPictures(Tower):
    """The rows and columns of each cell's pixels are swapped."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels.transpose(2, 3)).transpose(2, 3)


class ScaledAgain(Tower):
    """Pixels are brought from 0..1 to -1..1 once more."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels * 2 - 1)


class ClampedPixels(Tower):
    """Pixels are clamped to -1..1."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels.clamp(-1, 1))


class NarrowPixels(Tower):
    """The embedding is rounded to bfloat16 in every model."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(pixels).bfloat16().to(pixels.dtype)


class NoTokenBias(Step3Tower):
    """The convolution has no bias, as in the other families."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        weight = self.weights["vision_model.embeddings.patch_embedding.weight"]
        return F.conv2d(pixels, weight, stride=self.config.patch_size)


class _OwnKernel(Tower):
    """The patch convolution with its weight as one method."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if not name.endswith(("patch_embedding", "conv1")):
            return super().convolve(name, x, stride=stride, padding=padding)
        weight = self.kernel(self.weights[f"{name}.weight"])
        return F.conv2d(x, weight, self.weights.get(f"{name}.bias"), stride=stride)

    def kernel(self, weight: Tensor) -> Tensor:
        """The weight as it is used."""
        raise NotImplementedError


class FlippedKernel(_OwnKernel):
    """A true convolution, whose kernel is flipped."""

    def kernel(self, weight: Tensor) -> Tensor:
        return weight.flip(2, 3)


class ChannelsLastKernel(_OwnKernel):
    """The weight is read as if channels came last in memory."""

    def kernel(self, weight: Tensor) -> Tensor:
        return weight.flatten(1).unflatten(1, (*weight.shape[2:], 3)).permute(0, 3, 1, 2)


class ShiftedPatches(Tower):
    """Cells start one pixel too late, the last ones repeated at the edge."""

    def embed_patches(self, pixels: Tensor) -> Tensor:
        return super().embed_patches(F.pad(pixels[..., 1:, 1:], (0, 1, 0, 1), mode="replicate"))


class OverlappingPatches(Tower):
    """The stride is one pixel short, and the cells too many are cut."""

    def convolve(self, name: str, x: Tensor, *, stride: int, padding: int) -> Tensor:
        if not name.endswith(("patch_embedding", "conv1")):
            return super().convolve(name, x, stride=stride, padding=padding)
        rows, columns = x.shape[2] // stride, x.shape[3] // stride
        maps = super().convolve(name, x, stride=stride - 1, padding=padding)
        return maps[:, :, :rows, :columns]


_fault = partial(tower_fault, kind="patch embedding", clause="EN-02")
_channels = partial(tower_fault, kind="channel order", clause="EN-02")

FAULTS = (
    _channels(BlueFirst, "patch embedding: blue first"),
    _channels(ChannelsLastKernel, "patch embedding: weight read channels last", source="mlx-vlm"),
    _fault(TransposedPictures, "patch embedding: pixels transposed within a cell"),
    _fault(ScaledAgain, "patch embedding: pixels scaled again"),
    _fault(ClampedPixels, "patch embedding: pixels clamped"),
    _fault(NarrowPixels, "patch embedding: in bfloat16", dtypes=PRECISE),
    _fault(NoTokenBias, "patch embedding: no bias"),
    _fault(FlippedKernel, "patch embedding: kernel flipped"),
    _fault(ShiftedPatches, "patch embedding: shifted by one pixel"),
    _fault(OverlappingPatches, "patch embedding: stride one short"),
)
