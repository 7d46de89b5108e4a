"""Right encoders that differ from the reference in a harmless way; none may fail a check.

The only exception is an extended clause that one breaks by what it is. Each is a class built as
`encoder(config, weights, device=..., dtype=...)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from reference import FAMILIES, ReferenceEncoder
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Tower
from tests.harmless import calls, steps, towers

SINGLE, DOUBLE = torch.float32, torch.float64
LOW = (torch.bfloat16, torch.float16)
DTYPES = (SINGLE, *LOW, DOUBLE)
STEP3, PERCEPTION = FAMILIES[:1], FAMILIES[1:]

# Sums of a larger batch may be taken in another order: the last bits of a row depend on company.
BATCHED = ("BA-05",)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One harmless difference.

    Attributes:
        name: what differs.
        families: in which it can be.
        dtypes: in which it is one.
        encoder: the class that has it.
        breaks: clauses of the extended level that it may fail.
    """

    name: str
    families: tuple[str, ...] = FAMILIES
    dtypes: tuple[torch.dtype, ...] = DTYPES
    encoder: type
    breaks: tuple[str, ...] = ()


class EveryStepRounded(
    steps.LateAffine,
    steps.LateBias,
    steps.WrittenOutActivation,
    towers.NarrowSoftmax,
    towers.NarrowRotary,
):
    """As one writes it first: every step by itself in the dtype, statistics of norms apart."""


class EveryStepFused(
    towers.FlashAttention,
    towers.ComplexRotary,
    steps.NativeNorm,
    steps.FoldedBias,
    steps.ChannelsLast,
):
    """As one writes it for speed."""


def with_tower(mixin: type[Tower], families: tuple[str, ...]) -> type[ReferenceEncoder]:
    """The reference with some steps of its towers replaced."""
    bases = {family: Step3Tower if family in STEP3 else PerceptionTower for family in families}
    towers = {f: type(mixin.__name__, (mixin, base), {}) for f, base in bases.items()}
    return type(f"{mixin.__name__}Encoder", (ReferenceEncoder,), {"towers": towers})


def tower(
    name: str,
    mixin: type[Tower],
    families: tuple[str, ...] = FAMILIES,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
) -> Difference:
    """A difference in the arithmetic."""
    encoder = with_tower(mixin, families)
    return Difference(name=name, families=families, dtypes=dtypes, encoder=encoder)


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="second implementation", dtypes=(SINGLE, DOUBLE), encoder=calls.SecondArithmetic
    ),
    Difference(name="one image at a time", encoder=calls.OneImageAtATime),
    Difference(name="whole item in one batch", encoder=calls.WholeBatch, breaks=BATCHED),
    Difference(name="whole call in one batch", encoder=calls.OneBatchForAll, breaks=BATCHED),
    Difference(name="chunks of two", encoder=calls.ChunksOfTwo, breaks=BATCHED),
    Difference(name="batch sorted and restored", encoder=calls.SortedBatch, breaks=BATCHED),
    Difference(name="batch padded", encoder=calls.PaddedBatch, breaks=BATCHED),
    Difference(name="float64 inside", encoder=calls.OtherDtypeInside),
    Difference(name="float32 inside", dtypes=(*LOW, DOUBLE), encoder=calls.SingleInside),
    Difference(name="autocast", dtypes=LOW, encoder=calls.Autocast),
    Difference(name="inference mode", encoder=calls.InferenceMode),
    Difference(name="result not contiguous", encoder=calls.StridedResult),
    Difference(name="lists joined", encoder=calls.JoinedLists),
    Difference(name="rows copied into a buffer", encoder=calls.CopiedIntoPlace),
    tower("fused attention", towers.AnyFusedAttention),
    tower("fused attention, math", towers.MathAttention),
    tower("fused attention, flash", towers.FlashAttention),
    tower("softmax in the dtype", towers.NarrowSoftmax, dtypes=LOW),
    tower("attention in float32", towers.SingleSoftmax, dtypes=(*LOW, DOUBLE)),
    tower("scale on scores", towers.ScaledScores),
    tower("scale on queries and keys", towers.SharedScale),
    tower("heads padded", towers.PaddedHeads),
    tower("tokens padded and masked", towers.PaddedTokens),
    tower("softmax in tiles", towers.TiledSoftmax),
    tower("keys in reverse", towers.KeysInReverse),
    tower("split q, k, v", towers.SplitProjections),
    tower("complex rotary", towers.ComplexRotary, PERCEPTION),
    tower("half-split rotary", towers.HalfSplitRotary, PERCEPTION),
    tower("rotary in float32", towers.SingleRotary, PERCEPTION, (DOUBLE,)),
    tower("rotary in the dtype", towers.NarrowRotary, PERCEPTION, LOW),
    tower("tensor parallel", towers.TensorParallel),
    tower("one class token, weighted", towers.OneClassToken, STEP3),
    tower("positions tabulated", towers.TabulatedPositions),
    tower("layer norm written out", steps.ManualNorm),
    tower("layer norm by the dtype's kernel", steps.NativeNorm),
    tower("layer norm rounded before its weight", steps.LateAffine, dtypes=LOW),
    tower("layer norm in float32", steps.SingleNorm, dtypes=(DOUBLE,)),
    tower("layer norm in float64", steps.DoubleNorm, dtypes=(SINGLE, *LOW)),
    tower("norms folded into matrices", steps.FoldedNorms, PERCEPTION),
    tower("layer scale folded into matrices", steps.FoldedLayerScale, PERCEPTION),
    tower("residual stream in float32", steps.WideStream, dtypes=LOW),
    tower("bias folded in", steps.FoldedBias),
    tower("linear as convolution", steps.LinearAsConvolution),
    tower("channels in reverse", steps.ChannelsInReverse),
    tower("bias added late", steps.LateBias),
    tower("unfolded convolutions", steps.UnfoldedConvolutions),
    tower("convolutions by einsum", steps.EinsumConvolutions),
    tower("channels last", steps.ChannelsLast),
    tower("activation written out", steps.WrittenOutActivation),
    tower("activation in float32", steps.SingleActivation, dtypes=(*LOW, DOUBLE)),
    tower("compiled", steps.Compiled),
    tower("every step rounded", EveryStepRounded, dtypes=LOW),
    tower("every step fused", EveryStepFused),
)
