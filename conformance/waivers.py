"""Waivers: failures that a certificate excuses, as data.

A file holds `[[waiver]]` tables, one for each clause, family and dtype:

```toml
[[waiver]]
clause = "LA-02"
family = "step3"
dtype = "float32"
device = "cpu"                # the type of the device
releases = "==0.5.23"         # a version specifier
reason = "patches come after the thumbnail; mended in 0.5.24"
owner = "Jo Doe, vision team"
link = "https://example.org/issues/7"
expires = 2027-03-01
witnesses = ["0123456789abcdef0123456789abcdef"]  # digests of the failing cases of the line
```
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance.contract import contract
from conformance.document import DocumentError, printable, read_toml
from conformance.dtypes import DTYPES
from conformance.release import is_bounded, is_within
from conformance.results import Key, Line, Results
from reference import FAMILIES

_TEXTS = ("family", "dtype", "device", "releases", "owner", "link")

# A waiver without them is too wide, which is a matter of its own.
_WIDTH = ("clause", "reason")


class WaiverError(ValueError):
    """A file of waivers cannot be used; the message names the entry."""


@dataclass(frozen=True)
class Waiver:
    """One failure that is excused.

    Attributes:
        clause, family, dtype: the line of the results that it is about; the clause is empty if it
            names none.
        device: the type of the device, such as `cuda`.
        releases: a version specifier.
        reason: why it may be excused; empty if it gives none.
        owner: who answers for it.
        link: where it is followed up.
        expires: the last day on which it counts.
        witnesses: digests of the failing cases, one for each check of the line that fails.
    """

    clause: str
    family: str
    dtype: str
    device: str
    releases: str
    reason: str
    owner: str
    link: str
    expires: datetime.date
    witnesses: tuple[str, ...]

    @property
    def key(self) -> Key:
        """Clause, family and dtype: the line that it is about."""
        return self.clause, self.family, self.dtype

    def __str__(self) -> str:
        return " ".join(part for part in self.key if part)

    def too_wide(self) -> str:
        """Why it excuses too much; empty if it does not."""
        if not self.clause:
            return "it names no clause"
        if not self.reason and contract()[self.clause].level == "core":
            return "it gives no reason, and its clause is core"
        return "" if is_bounded(self.releases) else "it covers every release to come"

    def covers(self, version: str, device: str) -> bool:
        """Whether it is about a release on a type of device."""
        return device == self.device and is_within(version, self.releases)

    def matches(self, line: Line) -> bool:
        """Whether a line fails with exactly the cases that it names."""
        return line.bad and {found.digest for found in line.failures} == set(self.witnesses)


def read_waivers(data: bytes) -> tuple[Waiver, ...]:
    """The waivers of a file.

    Raises:
        WaiverError: it is not TOML, or an entry has a wrong field.
    """
    try:
        parsed = read_toml(data)
    except DocumentError as error:
        raise WaiverError(str(error)) from None
    entries = parsed.get("waiver")
    if set(parsed) != {"waiver"} or not isinstance(entries, list) or not entries:
        raise WaiverError("every entry is a [[waiver]], and there is at least one")
    return tuple(_entry(entry, f"entry {place}") for place, entry in enumerate(entries, 1))


def used(waivers: Iterable[Waiver], results: Results) -> dict[Key, Waiver]:
    """The waivers that excuse a line of some results, by its key."""
    header = results.header
    version, device = header.implementation.version, device_type(results)
    lines = {line.key: line for line in results.lines}
    return {
        waiver.key: waiver
        for waiver in waivers
        if waiver.key in lines
        and waiver.covers(version, device)
        and waiver.matches(lines[waiver.key])
    }


def device_type(results: Results) -> str:
    """The type of the device of some results, such as `cuda` of `cuda:1`."""
    return results.header.settings.device.partition(":")[0]


def _entry(entry: Any, where: str) -> Waiver:
    if not isinstance(entry, dict):
        raise WaiverError(f"{where} is no table")
    needed = (*_TEXTS, "expires", "witnesses")
    missing = [name for name in needed if name not in entry]
    surplus = [name for name in entry if name not in (*needed, *_WIDTH)]
    if missing or surplus:
        what = f"lacks {missing[0]!r}" if missing else f"has an unknown field {surplus[0]!r}"
        raise WaiverError(f"{where} {what}")
    values = {**dict.fromkeys(_WIDTH, ""), **entry}
    for name, (holds, rule) in _RULES.items():
        if not holds(values[name]):
            given = printable(values[name], 80)
            raise WaiverError(f"{where} has the {name} {given!r}; it must be {rule}")
    return Waiver(**{**values, "witnesses": tuple(values["witnesses"])})


def _is_specifier(value: Any) -> bool:
    try:
        SpecifierSet(value)
    except (InvalidSpecifier, TypeError, AttributeError):
        return False
    return isinstance(value, str)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and bool(value.strip())


def _are_digests(value: Any) -> bool:
    hexadecimal = set("0123456789abcdef")
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, str) and len(v) == 32 and set(v) <= hexadecimal for v in value)
    )


_RULES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "clause": (lambda v: v == "" or v in contract(), "a clause of the contract"),
    "family": (lambda v: v in FAMILIES, f"one of {', '.join(FAMILIES)}"),
    "dtype": (lambda v: isinstance(v, str) and v in DTYPES, f"one of {', '.join(DTYPES)}"),
    "device": (_is_line, "a type of device, such as cuda"),
    "releases": (_is_specifier, "a version specifier, such as ==0.5.23"),
    "reason": (_is_text, "text"),
    "owner": (_is_line, "one line of text"),
    "link": (_is_line, "one line of text"),
    "expires": (lambda v: type(v) is datetime.date, "a date, such as 2027-03-01"),
    "witnesses": (_are_digests, "digests of failing cases, 32 hexadecimal digits each"),
}
