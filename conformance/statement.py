"""The statement: what a package says, as an in-toto Statement with a test-result predicate.

All but the subject follows from the other files of the package, so a verifier makes it anew and
compares. See https://in-toto.io/Statement/v1 and https://in-toto.io/attestation/test-result/v0.1.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from conformance.artifact import Artifact
from conformance.certificate import certificate
from conformance.contract import contract
from conformance.results import Results
from conformance.waivers import Waiver, used

FORMAT = "step3vl-package-1"
TYPE = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"

# What decides about verdicts, beside the code.
_TABLES = ("contract.toml", "limits.toml")


def statement(
    subject: Mapping[str, Any],
    results: Results,
    waivers: tuple[Waiver, ...],
    challenge: str,
    files: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The statement of a package, as JSON values.

    Args:
        subject: as of `subject_of`.
        results: of the run.
        waivers: that were given.
        challenge: the nonce.
        files: as of `digest`, every other file of the package, by its path in it.
    """
    header = results.header
    excused = used(waivers, results)
    found = certificate(results, excused)
    return {
        "_type": TYPE,
        "subject": [dict(subject)],
        "predicateType": PREDICATE,
        "predicate": {
            "result": found.result,
            "configuration": [_table(name) for name in _TABLES],
            "passedTests": found.named("passed"),
            "warnedTests": found.named("waived", "unjudged"),
            "failedTests": found.named("failed"),
            "conformance": {
                "format": FORMAT,
                "contract": header.contract,
                "suite": header.suite.to_json(),
                "implementation": header.implementation.to_json(),
                "device": header.settings.device,
                "dtypes": list(header.settings.dtypes),
                "families": {name: grade.to_json() for name, grade in found.grades.items()},
                "waived": found.named("waived"),
                "challenge": challenge,
                "files": {name: dict(found) for name, found in files.items()},
            },
        },
    }


def subject_of(found: Artifact) -> dict[str, Any]:
    """An implementation's files as the subject of a statement."""
    notes = dataclasses.asdict(found)
    sha256 = notes.pop("sha256")
    return {"name": notes.pop("name"), "digest": {"sha256": sha256}, "annotations": notes}


def digest(data: bytes) -> dict[str, Any]:
    """How a statement describes the content of a file."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _table(name: str) -> dict[str, Any]:
    data = resources.files("conformance").joinpath(name).read_bytes()
    annotations = {"version": contract().version} if name == "contract.toml" else {}
    sha256 = hashlib.sha256(data).hexdigest()
    return {"name": name, "digest": {"sha256": sha256}, "annotations": annotations}
