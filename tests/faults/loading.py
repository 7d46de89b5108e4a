"""Faults in how weights get from a state dict into the encoder."""

# ruff: noqa: D102 - the methods are those of the reference, which says what they do.

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from reference import EncoderConfig, ReferenceEncoder, weight_shapes
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.stream import bell
from tests.faults.fault import PERCEPTION, PRECISE, Fault

Tensors = dict[str, Tensor]


class Loading(ReferenceEncoder):
    """Right; a fault changes what is given before it is checked, or after it was loaded."""

    def __init__(self, config: EncoderConfig, weights: Mapping[str, Tensor], **where: Any) -> None:
        self.shapes = weight_shapes(config)
        super().__init__(config, self.given(dict(weights)), **where)
        self.weights = {name: self.loaded(name, tensor) for name, tensor in self.weights.items()}

    def given(self, weights: Tensors) -> Tensors:
        """The state dict as it is checked."""
        return weights

    def loaded(self, name: str, tensor: Tensor) -> Tensor:  # noqa: ARG002
        """A tensor as it is computed with."""
        return tensor

    def random(self, name: str) -> Tensor:
        """What a tensor holds before anything is loaded into it."""
        return bell(7, name, self.shapes[name], 0.25)


class _Constant(Loading):
    """Leaves a constant in the tensors of some name."""

    ending: tuple[str, ...] = ()
    value = 0.0

    def loaded(self, name: str, tensor: Tensor) -> Tensor:
        return torch.full_like(tensor, self.value) if name.endswith(self.ending) else tensor


class FusedBiasUnused(_Constant):
    """The bias of queries, keys and values stays zero."""

    ending = ("qkv_proj.bias", "attn.in_proj_bias")


class OutputBiasUnused(_Constant):
    """The bias behind attention stays zero."""

    ending = ("out_proj.bias",)


class NormBiasUnused(_Constant):
    """The bias of every first norm of a block stays zero."""

    ending = ("layer_norm1.bias", "ln_1.bias")


class NormWeightUnused(_Constant):
    """The weight of every second norm of a block stays one."""

    ending, value = ("layer_norm2.weight", "ln_2.weight"), 1.0


class DownsamplerBiasUnused(_Constant):
    """The bias of the second downsampler stays zero."""

    ending = ("vit_downsampler2.bias",)


class GammaUnused(_Constant):
    """Layer scale keeps the value that it is built with."""

    ending, value = ("ls_1.gamma", "ls_2.gamma"), 0.1


class PreNormBiasUnused(_Constant):
    """The bias of the norm before the blocks stays zero."""

    ending = ("ln_pre.bias",)


class ProjectorBiasUnused(_Constant):
    """The bias of the projector stays zero."""

    ending = ("vit_large_projector.bias",)


class QueryBiasUnused(Loading):
    """The part of the fused bias that is for queries stays zero."""

    def loaded(self, name: str, tensor: Tensor) -> Tensor:
        if name.endswith(("qkv_proj.bias", "attn.in_proj_bias")):
            third = len(tensor) // 3
            return torch.cat([torch.zeros_like(tensor[:third]), tensor[third:]])
        return tensor


class SquaresTransposed(Loading):
    """Square matrices are transposed, as those of another layout need."""

    def loaded(self, name: str, tensor: Tensor) -> Tensor:
        square = tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]
        return tensor.T if square and name.endswith("out_proj.weight") else tensor


class ThroughBfloat16(Loading):
    """Weights are rounded to bfloat16, as they are published."""

    def loaded(self, name: str, tensor: Tensor) -> Tensor:  # noqa: ARG002
        return tensor.to(torch.bfloat16).to(tensor.dtype)


class _RememberedStep3(Step3Tower):
    def positions(self, grid: tuple[int, int]) -> Tensor:
        return _remembered(self, super().positions, grid)


class _RememberedPerception(PerceptionTower):
    def positions(self, grid: tuple[int, int]) -> Tensor:
        return _remembered(self, super().positions, grid)


def _remembered(tower: Any, positions: Any, grid: tuple[int, int]) -> Tensor:
    tables = tower.weights.tables
    return tables.setdefault(grid, positions(grid))


class _WithTables(dict[str, Tensor]):
    """Weights that carry the position tables made from them."""

    def __init__(
        self, weights: Mapping[str, Tensor], tables: dict[tuple[int, int], Tensor]
    ) -> None:
        super().__init__(weights)
        self.tables = tables


class TablesKept(ReferenceEncoder):
    """New weights are loaded into the encoder, which keeps its resampled position tables."""

    towers = {  # noqa: RUF012
        "step3": _RememberedStep3,
        "step3-vl-10b": _RememberedPerception,
        "step3p7": _RememberedPerception,
    }

    def __init__(self, config: EncoderConfig, weights: Mapping[str, Tensor], **where: Any) -> None:
        super().__init__(config, weights, **where)
        self.weights = _WithTables(self.weights, {})

    def reload(self, weights: Mapping[str, Tensor]) -> None:
        """Load other weights."""
        fresh = ReferenceEncoder(self.config, weights, device=self.device, dtype=self.dtype)
        self.weights = _WithTables(fresh.weights, self.weights.tables)  # type: ignore[attr-defined]


class OneTensorNotReloaded(ReferenceEncoder):
    """New weights are loaded into the encoder, but for the fused bias of the last block."""

    def reload(self, weights: Mapping[str, Tensor]) -> None:
        """Load other weights."""
        fresh = ReferenceEncoder(self.config, weights, device=self.device, dtype=self.dtype)
        kept = max(name for name in self.weights if name.endswith(FusedBiasUnused.ending))
        self.weights = {**fresh.weights, kept: self.weights[kept]}


class MissingIsZero(Loading):
    """A tensor that is missing is zero."""

    def given(self, weights: Tensors) -> Tensors:
        return {name: torch.zeros(shape) for name, shape in self.shapes.items()} | weights


class MissingIsRandom(Loading):
    """A tensor that is missing keeps its random values."""

    def given(self, weights: Tensors) -> Tensors:
        return {name: self.random(name) for name in self.shapes} | weights


class UnknownPassedOver(Loading):
    """A tensor that the encoder has no place for is passed over."""

    def given(self, weights: Tensors) -> Tensors:
        return {name: tensor for name, tensor in weights.items() if name in self.shapes}


class LongerIsCut(Loading):
    """A tensor that is too long is cut, as padded vocabularies are."""

    def given(self, weights: Tensors) -> Tensors:
        return {
            name: tensor[: self.shapes[name][0]] if name in self.shapes else tensor
            for name, tensor in weights.items()
        }


class MisfitKeepsRandom(Loading):
    """A tensor of the wrong shape is passed over, and random values stay."""

    def given(self, weights: Tensors) -> Tensors:
        return {
            name: self.random(name)
            if name in self.shapes and tuple(tensor.shape) != self.shapes[name]
            else tensor
            for name, tensor in weights.items()
        }


class PrefixRefused(ReferenceEncoder):
    """Names with the prefix `model.` are unknown."""

    accepts_prefix = False


class PrefixLeavesRandom(Loading):
    """Names with the prefix `model.` are another model's, and random values stay."""

    accepts_prefix = False

    def given(self, weights: Tensors) -> Tensors:
        if not any(name.startswith("model.") for name in weights):
            return weights
        return {name: self.random(name) for name in self.shapes}


class PrefixOfVisionModelOnly(Loading):
    """The prefix `model.` is known before `vision_model.` alone; the rest stays random."""

    accepts_prefix = False

    def given(self, weights: Tensors) -> Tensors:
        if not any(name.startswith("model.") for name in weights):
            return weights
        known = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
        vision = {n: tensor for n, tensor in known.items() if n.startswith("vision_model.")}
        return {name: self.random(name) for name in self.shapes} | vision


_weights = functools.partial(Fault, kind="weights")
_unused = functools.partial(Fault, kind="weights", clause="WE-01")

FAULTS = (
    _unused(name="weights: bias of q, k, v unused", encoder=FusedBiasUnused),
    _unused(name="weights: bias behind attention unused", encoder=OutputBiasUnused),
    _unused(name="weights: bias of first norms unused", encoder=NormBiasUnused),
    _unused(name="weights: weight of second norms unused", encoder=NormWeightUnused),
    _unused(name="weights: bias of a downsampler unused", encoder=DownsamplerBiasUnused),
    _unused(
        name="weights: gammas unused",
        encoder=GammaUnused,
        families=PERCEPTION,
    ),
    _unused(
        name="weights: bias of the first norm unused",
        encoder=PreNormBiasUnused,
        families=PERCEPTION,
    ),
    _unused(name="weights: bias of the projector unused", encoder=ProjectorBiasUnused),
    _unused(name="weights: position tables kept", encoder=TablesKept),
    _unused(name="weights: one tensor not reloaded", encoder=OneTensorNotReloaded),
    _unused(name="weights: rounded to bfloat16", encoder=ThroughBfloat16, dtypes=PRECISE),
    _unused(name="weights: bias of queries unused", encoder=QueryBiasUnused),
    _weights(name="weights: squares transposed", clause="EN-08", encoder=SquaresTransposed),
    _weights(name="weights: missing is zero", clause="WE-02", encoder=MissingIsZero),
    _weights(name="weights: missing is random", clause="WE-02", encoder=MissingIsRandom),
    _weights(name="weights: unknown passed over", clause="WE-02", encoder=UnknownPassedOver),
    _weights(name="weights: longer is cut", clause="WE-02", encoder=LongerIsCut),
    _weights(name="weights: misfits keep random values", clause="WE-02", encoder=MisfitKeepsRandom),
    _weights(name="weights: prefix refused", clause="WE-03", encoder=PrefixRefused),
    _weights(
        name="weights: prefix leaves random values", clause="WE-03", encoder=PrefixLeavesRandom
    ),
    _weights(
        name="weights: prefix of the tower only",
        clause="WE-03",
        encoder=PrefixOfVisionModelOnly,
    ),
)
