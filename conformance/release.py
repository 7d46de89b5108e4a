"""Releases: whether a version is within a range of them."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


def is_within(version: str, releases: str) -> bool:
    """Whether a version is within a version specifier; one that has no number never is."""
    try:
        release = Version(version)
    except InvalidVersion:
        return False
    return SpecifierSet(releases).contains(release, prereleases=True)


def is_bounded(releases: str) -> bool:
    """Whether a version specifier ends: releases to come are not within it."""
    return any(one.operator in ("==", "===", "~=", "<", "<=") for one in SpecifierSet(releases))
