"""Known failures: what is wrong with which releases, as data.

A file holds `[[known]]` tables:

```toml
[[known]]
releases = ">=0.5.14"         # a version specifier
families = ["step3"]
clauses = ["LA-02", "LA-03"]
dtypes = ["float32"]          # optional: all
devices = ["cpu"]             # optional: all
sometimes = true              # optional: may pass on some machines, and is then not stale
what = "one line of what is wrong"
link = "unreported"           # or where it is reported
```

The saved cases that show them lie in a folder beside the file, and named like it; see
`conformance.witness`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance.contract import contract
from conformance.release import is_within
from reference import FAMILIES

KNOWN_FOLDER = Path(__file__).parent / "known"

_REQUIRED = ("releases", "families", "clauses", "what", "link")
_OPTIONAL = ("dtypes", "devices", "sometimes")


class KnownError(ValueError):
    """A file of known failures cannot be used; the message names the file and the entry."""


@dataclass(frozen=True)
class Known:
    """One known failure.

    Attributes:
        releases: which it is in, a version specifier.
        families: which it is in.
        clauses: which it fails.
        what: is wrong, in one line.
        link: where it is reported, or `unreported`.
        dtypes: in which it shows; empty for all.
        devices: on which it shows; empty for all.
        sometimes: whether it may pass on some machines.
    """

    releases: str
    families: tuple[str, ...]
    clauses: tuple[str, ...]
    what: str
    link: str
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    sometimes: bool = False

    def covers(self, version: str, device: str) -> bool:
        """Whether it is about a release on a device."""
        there = not self.devices or device in self.devices
        return there and is_within(version, self.releases)

    def names(self, clause: str, family: str, dtype: str) -> bool:
        """Whether it says that a clause fails for a family in a dtype."""
        in_dtype = not self.dtypes or dtype in self.dtypes
        return clause in self.clauses and family in self.families and in_dtype


def read_known(name: str, file: str | None = None) -> tuple[Known, ...]:
    """The known failures of an implementation.

    Args:
        name: of the implementation; none are known of those that the suite has no file for.
        file: read instead of the suite's own.

    Raises:
        KnownError: the file is missing or one of its entries is wrong.
    """
    if file is not None:
        try:
            return _parse(Path(file).read_text(encoding="utf-8"), file)
        except OSError as error:
            raise KnownError(f"cannot read the known failures {file}: {error.strerror}") from None
    own = KNOWN_FOLDER / f"{name}.toml"
    return _parse(own.read_text(encoding="utf-8"), f"known/{name}.toml") if own.is_file() else ()


def witness_folder(name: str, file: str | None = None) -> Path:
    """The folder of the witnesses of an implementation: beside the file, and named like it."""
    return Path(file).with_suffix("") if file is not None else KNOWN_FOLDER / name


def match(known: Sequence[Known], clause: str, family: str, dtype: str) -> Known | None:
    """The first entry that says that a clause fails for a family in a dtype."""
    return next((entry for entry in known if entry.names(clause, family, dtype)), None)


def _parse(text: str, where: str) -> tuple[Known, ...]:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise KnownError(f"{where} is not TOML: {error}") from None
    if surplus := [name for name in parsed if name != "known"]:
        raise KnownError(f"{where} has the table {surplus[0]!r}; every entry is a [[known]]")
    entries = parsed.get("known", [])
    return tuple(
        _entry(entry, f"{where}, entry {index + 1}") for index, entry in enumerate(entries)
    )


def _entry(entry: dict[str, Any], where: str) -> Known:
    missing = [name for name in _REQUIRED if name not in entry]
    surplus = [name for name in entry if name not in (*_REQUIRED, *_OPTIONAL)]
    if missing or surplus:
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown field {surplus[0]!r}"
        raise KnownError(f"{where} {what}")
    for clause in entry["clauses"]:
        if clause not in contract():
            raise KnownError(f"{where} names the unknown clause {clause!r}")
    for family in entry["families"]:
        if family not in FAMILIES:
            raise KnownError(f"{where} names the unknown family {family!r}")
    try:
        SpecifierSet(entry["releases"])
    except InvalidSpecifier:
        raise KnownError(f"{where} has releases {entry['releases']!r}, no specifier") from None
    frozen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Known(**frozen)
