"""Witnesses: the saved cases that known failures are bound to.

A witness is a case that a check fails on, with the releases in which it was seen to and how. A run
replays it before anything else: a failure that is known needs no search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.check import Check
from conformance.judge import Verdict
from conformance.known import Known
from conformance.release import is_within
from conformance.search import confirmed
from conformance.trial import LeftOut, NotOffered, Trial
from strategies import Case, load_case, save_case

_WEIGHTS = "weights"


@dataclass(frozen=True)
class Witness:
    """A case that fails a check in some releases.

    Attributes:
        file: where it is saved.
        case: the case.
        check: that it fails.
        kinds: how it fails in each release that it was seen in: an exception's type, `values` or
            `behaviour`.
        expected, came: in the release that it was made from.
    """

    file: Path
    case: Case
    check: str
    kinds: Mapping[str, str]
    expected: str
    came: str

    @property
    def name(self) -> str:
        """Its file, seen from the folder of the known failures."""
        return f"{self.file.parent.name}/{self.file.name}"

    def kinds_in(self, release: str, known: Known) -> set[str]:
        """How it may fail in a release: as it was seen to, there or else in others of an entry."""
        if release in self.kinds:
            return {self.kinds[release]}
        return {kind for seen, kind in self.kinds.items() if is_within(seen, known.releases)}

    def seen(self, release: str, kind: str) -> Witness:
        """Note how it fails in a release; a file that says so already is not touched."""
        if self.kinds.get(release) == kind:
            return self
        noted = dataclasses.replace(self, kinds={**self.kinds, release: kind})
        noted.save()
        return noted

    def unseen(self, release: str) -> None:
        """Note that it passes in a release; one that fails in none is removed."""
        if release not in self.kinds:
            return
        kept = {seen: kind for seen, kind in self.kinds.items() if seen != release}
        if kept:
            dataclasses.replace(self, kinds=kept).save()
        else:
            self.file.unlink()

    def save(self) -> None:
        """Write it to its file, and its weights beside the folder, where others share them."""
        weights = self.file.parent.with_name(_WEIGHTS)
        for folder in (self.file.parent, weights):
            folder.mkdir(parents=True, exist_ok=True)
        notes = {
            "check": self.check,
            "kinds": dict(sorted(self.kinds.items())),
            "expected": self.expected,
            "came": self.came,
        }
        save_case(self.case, self.file, notes, weights=weights)


def read_witness(file: Path) -> Witness:
    """Read a saved witness.

    Raises:
        ValueError: the file is no witness.
    """
    case, notes = load_case(file)
    try:
        return Witness(file, case, notes["check"], notes["kinds"], notes["expected"], notes["came"])
    except KeyError as missing:
        raise ValueError(f"{file} is no witness: its notes lack {missing}") from None


def witnesses(folder: Path, check: str, family: str, dtype: str) -> list[Witness]:
    """The saved witnesses of a check for a family and dtype."""
    return [
        read_witness(file)
        for file in sorted(folder.glob(f"{check}-{family}-{dtype}-*.safetensors"))
    ]


def witness_file(folder: Path, check: str, case: Case) -> Path:
    """Where a witness is saved."""
    dtype = str(case.dtype).removeprefix("torch.")
    return folder / f"{check}-{case.config.family}-{dtype}-{case.digest[:8]}.safetensors"


def find_witness(
    folder: Path, check: str, family: str, dtype: str, release: str, known: Known
) -> Witness | None:
    """The witness of a known failure: one that was seen in a release, or else in another of it."""
    found = witnesses(folder, check, family, dtype)
    seen = [w for w in found if release in w.kinds]
    akin = [w for w in found if any(is_within(release, known.releases) for release in w.kinds)]
    return next(iter([*seen, *akin]), None)


def replayed(check: Check, trial: Trial, case: Case) -> Verdict | None:
    """The verdict on a case, by a new encoder; None if the case says nothing here."""
    trial.driver.forget()
    try:
        return confirmed(check, trial, case)
    except (LeftOut, NotOffered):
        return None
