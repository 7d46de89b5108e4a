"""What a run ran on: the suite, the machine, the packages and the flags that decide rounding."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from conformance.isolation.remote import AnyImplementation, RemoteImplementation
from conformance.machine import SUITE, machine, versions
from conformance.results import Environment, Suite

_ROOT = Path(__file__).parent.parent
_CODE = ("conformance", "reference", "strategies")

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
        version = metadata.version(SUITE)
    except metadata.PackageNotFoundError:
        version = "not installed"
    top = _git("rev-parse", "--show-toplevel")
    if top is None or Path(top) != _ROOT:
        return Suite(version, None, None)
    return Suite(version, _git("rev-parse", "HEAD"), _git("status", "--porcelain", *_CODE) == "")


def environment(implementation: AnyImplementation, device: torch.device) -> Environment:
    """The machine that an implementation runs on, and where that is not this one, this one too."""
    if isinstance(implementation, RemoteImplementation):
        near = {"python": platform.python_version(), **versions()}
        return Environment(**implementation.machine, near=near)
    return Environment(**machine(implementation, device))


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
