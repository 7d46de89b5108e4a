"""Planted faults: wrong encoders, each of which its clause must name."""

from __future__ import annotations

import importlib

from tests.faults.fault import Fault

_MODULES = (
    "patch_embedding",
    "positions",
    "class_tokens",
    "norms",
    "layer_scale",
    "rotary",
    "attention",
    "blocks",
    "activation",
    "downsamplers",
    "projector",
    "precision",
    "geometry",
    "company",
    "whole",
    "counts",
    "merging",
    "effects",
    "malformed",
    "loading",
)


def _collected() -> tuple[Fault, ...]:
    found: list[Fault] = []
    for name in _MODULES:
        try:
            module = importlib.import_module(f"tests.faults.{name}")
        except ModuleNotFoundError:
            continue
        found += module.FAULTS
    return tuple(found)


FAULTS: tuple[Fault, ...] = _collected()
