"""Stand-ins can be imported and named, and nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import pytest

from conformance.adapters.import_stubs import KernelUnavailable, missing, stand_in

LEAF = "absent_engine.layers.activation"


@pytest.fixture
def leaf() -> Iterator[str]:
    """A stand-in for a module three packages deep."""
    finders = list(sys.meta_path)
    stand_in([LEAF])
    yield LEAF
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.startswith("absent_engine")]:
        del sys.modules[name]


def test_a_leaf_is_importable_and_its_kernels_raise(leaf: str) -> None:
    """What it is asked for has a name; calling it says whose kernel is missing."""
    kernel = importlib.import_module(leaf).gelu_and_mul
    with pytest.raises(KernelUnavailable, match=r"absent_engine.layers.activation.gelu_and_mul"):
        kernel(1)


def test_what_is_above_a_leaf_is_empty(leaf: str) -> None:
    """Packages on the way have no other modules and no attributes."""
    importlib.import_module(leaf)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("absent_engine.layers.norm")
    assert not hasattr(importlib.import_module("absent_engine"), "kernels")


def test_a_module_with_a_stand_in_still_counts_as_missing(leaf: str) -> None:
    """So that a report names it, whenever it is asked."""
    assert missing([leaf, "torch.nn"]) == (leaf,)


def test_an_installed_package_comes_first() -> None:
    """A stand-in never hides what is there."""
    finders = list(sys.meta_path)
    stand_in(["json"])
    try:
        assert importlib.import_module("json.scanner").__name__ == "json.scanner"
        assert importlib.import_module("json.scanner").make_scanner is not None
        assert missing(["json"]) == ()
    finally:
        sys.meta_path[:] = finders
