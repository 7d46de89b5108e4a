"""Results made by hand: plain values, any field of which can be given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.contract import contract
from conformance.results import (
    Environment,
    Finding,
    Header,
    KnownFailure,
    Line,
    Results,
    Settings,
    Subject,
    Suite,
)

KNOWN = KnownFailure("thumbnails stand first", "unreported", ">=1")


def finding(**changes: Any) -> Finding:
    """A check that failed."""
    values: dict[str, Any] = {
        "check": "la_02_patches_before_the_thumbnail",
        "status": "failed",
        "cases": 1,
        "sentence": "An image is its patches in order, then its thumbnail.",
        "kind": "values",
        "expected": "rows within 16 noise units",
        "came": "2 of 2 rows differ",
        "case": "Case(step3)",
        "digest": "0" * 32,
        "file": "r-cases/case.safetensors",
    }
    return Finding(**{**values, **changes})


def line(**changes: Any) -> Line:
    """A clause that passed."""
    values: dict[str, Any] = {
        "clause": "LA-01",
        "level": contract()[changes.get("clause", "LA-01")].level,
        "family": "step3",
        "dtype": "float32",
        "applies": True,
        "required": True,
        "complete": True,
        "verdict": "passed",
        "reason": "",
        "blocked_by": (),
        "cases": 10,
        "left_out": 0,
        "worst": 1.5,
        "known": (),
        "checks": (),
    }
    return Line(**{**values, **changes})


def results(
    name: str = "mine",
    version: str = "1.0",
    lines: Sequence[Line] = (),
    status: int = 0,
    **settings: Any,
) -> Results:
    """The results of an implementation and release."""
    families = tuple(dict.fromkeys(line.family for line in lines)) or ("step3",)
    values: dict[str, Any] = {
        "device": "cpu",
        "dtypes": ("float32",),
        "families": families,
        "levels": ("core", "strict"),
        "required": "core",
        "clauses": (),
        "profile": "standard",
        "examples": 10,
        "seed": 0,
        "error_match": "type",
        "known": "own",
    }
    header = Header(
        contract=contract().version,
        suite=Suite("0.1.0", None, None),
        implementation=Subject(name, name, version, "items", families, ()),
        settings=Settings(**{**values, **settings}),
        environment=Environment(
            "CPython 3.11.9",
            "Linux 6.1 x86_64",
            "x86_64",
            {"torch": "2.13.0", "numpy": "2.4.0"},
            {"threads": 1},
        ),
        limits={"float32": {"row": 8.0, "element": 20.0}},
    )
    return Results.of(header, lines, status)
