"""Where a package comes from: versions, checkout, environment, profile."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from conformance import certification, package
from conformance.contract import contract
from conformance.dtypes import DTYPES
from conformance.environment import suite
from conformance.judge import limits
from conformance.results import Header, Settings
from conformance.rules import Breach
from conformance.search import PROFILES
from conformance.withdrawn import withdrawn


def check_versions(header: Header) -> Iterator[Breach]:
    """The versions of contract and suite, and the checkout."""
    refused, own = withdrawn(), suite().version
    for what, version in (("contract", header.contract), ("suite", header.suite.version)):
        if version in refused[what]:
            yield _breach("PV-04", f"{what} {version} is withdrawn: {refused[what][version]}")
    if header.contract != contract().version:
        yield _breach(
            "PV-01", f"it is of contract {header.contract}, the verifier's is {contract().version}"
        )
    if header.suite.version != own:
        yield _breach(
            "PV-02", f"it is of suite {header.suite.version}; verify it with that, not with {own}"
        )
    if header.suite.commit is None or header.suite.clean is not True:
        state = "no checkout" if header.suite.commit is None else "a checkout with changes"
        yield _breach("PV-03", f"the suite ran from {state}")


def check_environment(header: Header, environment: Mapping[str, Any]) -> Iterator[Breach]:
    """The environment in full against the one in the results."""
    said = header.environment.to_json()
    packages = environment["packages"]
    differing = [name for name in said if name != "packages" and said[name] != environment[name]]
    differing += [name for name, v in said["packages"].items() if packages.get(name) != v]
    if environment["device"] != header.settings.device:
        differing.append("device")
    for name in differing:
        message = f"{name} is not what the results say"
        yield Breach("PV-05", message, package.ENVIRONMENT)


def check_profile(header: Header) -> Iterator[Breach]:
    """The settings against the frozen profile, and the limits against the noise table."""
    settings = header.settings
    frozen = dataclasses.replace(
        settings,
        families=header.implementation.families,
        levels=certification.CHECKED,
        required=certification.REQUIRED,
        clauses=(),
        profile=certification.PROFILE,
        examples=PROFILES[certification.PROFILE],
        seed=certification.SEED,
        error_match=certification.MATCHING,
        known="none",
    )
    for field in dataclasses.fields(Settings):
        given, right = getattr(settings, field.name), getattr(frozen, field.name)
        if given != right:
            yield _breach("CT-01", f"{field.name} is {given}; a certificate has {right}")
    right = {dtype: limits(DTYPES[dtype]) for dtype in settings.dtypes}
    table = {dtype: {"row": found.row, "element": found.element} for dtype, found in right.items()}
    if header.limits != table:
        yield _breach("CT-06", "the limits are not those of the noise table")


def _breach(rule: str, message: str) -> Breach:
    return Breach(rule, message, package.RESULTS, 1)
