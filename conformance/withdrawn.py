"""Versions of the contract and of the suite that were withdrawn, as data."""

from __future__ import annotations

import tomllib
from importlib import resources


def withdrawn() -> dict[str, dict[str, str]]:
    """The reasons by version, of `contract` and of `suite`."""
    text = resources.files("conformance").joinpath("withdrawn.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
