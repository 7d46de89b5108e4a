"""The machine that an implementation runs on: its interpreter, its packages, its numeric flags."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from importlib import metadata
from typing import Any

import torch

from conformance.protocol import Implementation
from conformance.state import precision_flags

SUITE = "step3vl-conformance"

_ALWAYS = ("torch", "numpy", "hypothesis", "safetensors")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def machine(implementation: Implementation, device: torch.device) -> dict[str, Any]:
    """This process's machine: `python`, `platform`, `processor`, `packages` and `numerics`."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(device),
        "packages": versions({*_ALWAYS, *_packages(implementation)}),
        "numerics": {
            "threads": torch.get_num_threads(),
            "float32 matmul precision": torch.get_float32_matmul_precision(),
            "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
            **precision_flags(),
        },
    }


def versions(names: Iterable[str] = _ALWAYS) -> dict[str, str]:
    """The versions of installed distributions, by name; those that are not there are left out."""
    found = {}
    for name in sorted(names):
        try:
            found[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return found


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"


def _packages(implementation: Implementation) -> set[str]:
    """The distributions that hold an implementation, and what they require."""
    module = type(implementation).__module__.split(".")[0]
    own = {*metadata.packages_distributions().get(module, ()), implementation.name} - {SUITE}
    return own | {
        found[0] for name in own for text in _requires(name) if (found := _NAME.match(text))
    }


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        return []
