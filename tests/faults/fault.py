"""A planted fault: the reference, wrong in exactly one place."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from reference import FAMILIES, ReferenceEncoder
from reference.perception import PerceptionTower
from reference.step3 import Step3Tower
from reference.tower import Tower

STEP3, PERCEPTION = FAMILIES[:1], FAMILIES[1:]

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)

# Where steps in bfloat16 or TF32 are wrong.
PRECISE = (torch.float32, torch.float64)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to be wrong, and the clause that must say so.

    Attributes:
        name: where and what, such as `rotary: height first`.
        kind: the kind of fault that it is one of.
        families: in which it can be.
        clause: that must name it.
        encoder: the class that has it.
        source: where it was seen in public, empty if it was not.
        dtypes: of the models in which it is wrong.
    """

    name: str
    kind: str
    families: tuple[str, ...] = FAMILIES
    clause: str
    encoder: type[ReferenceEncoder]
    source: str = ""
    dtypes: tuple[torch.dtype, ...] = DTYPES


def with_tower(mixin: type[Tower]) -> type[ReferenceEncoder]:
    """The reference encoder with a mixin before the towers that it fits.

    A mixin of `Step3Tower` or of `PerceptionTower` is that family's tower; any other `Tower` goes
    before both.
    """
    step3 = _tower(mixin, Step3Tower, PerceptionTower)
    perception = _tower(mixin, PerceptionTower, Step3Tower)
    towers = {"step3": step3, "step3-vl-10b": perception, "step3p7": perception}
    return type(f"{mixin.__name__}Encoder", (ReferenceEncoder,), {"towers": towers})


def _tower(mixin: type[Tower], own: type[Tower], other: type[Tower]) -> type[Tower]:
    """The mixin's tower of one architecture, or the right one if the mixin is for the other."""
    if issubclass(mixin, own):
        return mixin
    if issubclass(mixin, other):
        return own
    return type(f"{mixin.__name__}{own.__name__}", (mixin, own), {})


def tower_fault(
    mixin: type[Tower],
    name: str,
    *,
    kind: str,
    clause: str,
    families: tuple[str, ...] | None = None,
    source: str = "",
    dtypes: tuple[torch.dtype, ...] = DTYPES,
) -> Fault:
    """A fault of a tower; its families are those of the mixin's architecture unless given."""
    if families is None:
        families = FAMILIES
        if issubclass(mixin, Step3Tower):
            families = STEP3
        elif issubclass(mixin, PerceptionTower):
            families = PERCEPTION
    return Fault(
        name=name,
        kind=kind,
        families=families,
        clause=clause,
        encoder=with_tower(mixin),
        source=source,
        dtypes=dtypes,
    )
