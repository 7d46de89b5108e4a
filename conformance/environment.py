"""What a run ran on: the suite, the machine, the packages and the flags that decide rounding."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from packaging.requirements import Requirement

from conformance.protocol import Implementation
from conformance.results import Environment, Suite
from conformance.state import precision_flags

_SUITE = "step3vl-conformance"
_ROOT = Path(__file__).parent.parent
_CODE = ("conformance", "reference", "strategies")
_ALWAYS = ("torch", "numpy", "hypothesis", "safetensors")

# Variables that decide about rounding or about the device.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)


def suite() -> Suite:
    """The suite's version, and the commit and state of its checkout if it runs from one."""
    try:
        version = metadata.version(_SUITE)
    except metadata.PackageNotFoundError:
        version = "not installed"
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top) != _ROOT:
        return Suite(version, None, None)
    return Suite(version, _git("rev-parse", "HEAD"), _git("status", "--porcelain", *_CODE) == "")


def environment(implementation: Implementation, device: torch.device) -> Environment:
    """The machine, and the packages of the suite and of an implementation."""
    return Environment(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        platform=f"{platform.system()} {platform.release()} {platform.machine()}",
        processor=_processor(device),
        packages=_versions({*_ALWAYS, *_packages(implementation)}),
        numerics={
            "threads": torch.get_num_threads(),
            "float32 matmul precision": torch.get_float32_matmul_precision(),
            "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
            **precision_flags(),
        },
    )


def _processor(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"


def _packages(implementation: Implementation) -> set[str]:
    """The distributions that hold an implementation, and what they require."""
    module = type(implementation).__module__.split(".")[0]
    own = {*metadata.packages_distributions().get(module, ()), implementation.name} - {_SUITE}
    required = {Requirement(text).name for name in own for text in _requires(name)}
    return own | required


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        return []


def _versions(names: Iterable[str]) -> dict[str, str]:
    found = {}
    for name in sorted(names):
        try:
            found[name] = metadata.version(name)
        except (metadata.PackageNotFoundError, ValueError):
            continue
    return found


def _git(*arguments: str) -> str | None:
    """What git says of the checkout; None if there is no git or no checkout."""
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def inventory(found: Environment, device: torch.device) -> dict[str, Any]:
    """An environment in full, for a package: every installed distribution and the driver too."""
    versions = {d.name: d.version for d in metadata.distributions() if d.name}
    return {
        **found.to_json(),
        "packages": dict(sorted({**versions, **found.packages}.items())),
        "device": str(device),
        "driver": _driver(device),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def _driver(device: torch.device) -> dict[str, str]:
    """Versions of what stands between torch and an accelerator, by name."""
    if device.type != "cuda":
        return {}
    found = {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, check=True)
        found["driver"] = done.stdout.split("\n")[0].strip()
    return found
