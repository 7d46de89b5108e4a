"""What a run ran on: the suite, the machine, the packages and the flags that decide rounding."""

from __future__ import annotations

import platform
import subprocess
from importlib import metadata
from pathlib import Path

import torch

from conformance.isolation.remote import AnyImplementation, RemoteImplementation
from conformance.machine import SUITE, machine, versions
from conformance.results import Environment, Suite

_ROOT = Path(__file__).parent.parent
_CODE = ("conformance", "reference", "strategies")


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
        return Environment(**implementation.about["machine"], near=near)
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
