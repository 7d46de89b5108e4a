"""Planted faults: wrong encoders, each of which its clause must name."""

from __future__ import annotations

import importlib
import pkgutil

from tests.faults.fault import Fault


def _collected() -> tuple[Fault, ...]:
    """The faults of every module of this package, in the order of their names."""
    found: list[Fault] = []
    for entry in pkgutil.iter_modules(__path__, f"{__name__}."):
        found += getattr(importlib.import_module(entry.name), "FAULTS", ())
    return tuple(found)


FAULTS: tuple[Fault, ...] = _collected()
