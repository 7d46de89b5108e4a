"""What changed between two result files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.results import Key, Line, Results

# An error that moves by less is the noise of other cases or another machine.
MOVED = 2.0

_COMPARED = ("device", "profile", "seed", "error_match", "known")


@dataclass(frozen=True)
class Change:
    """A line that differs.

    Attributes:
        key: clause, family and dtype.
        before, after: what was said of it; `absent` where a file has no such line.
        moved: whether only its error changed.
    """

    key: Key
    before: str
    after: str
    moved: bool = False

    def __str__(self) -> str:
        return f"{' '.join(self.key)}: {self.before} -> {self.after}"


def changes(before: Results, after: Results) -> list[Change]:
    """Every verdict that changed, then every error that moved by more than a factor of two."""
    one, other = ({line.key: line for line in results.lines} for results in (before, after))
    found = [
        change for key in {**one, **other} if (change := _change(key, one.get(key), other.get(key)))
    ]
    return sorted(found, key=lambda change: change.moved)


def warnings(before: Results, after: Results) -> Iterator[str]:
    """What makes two result files hard to compare, a line each."""
    if before.header.contract != after.header.contract:
        yield f"contract: {before.header.contract} -> {after.header.contract}"
    for name in _COMPARED:
        values = [getattr(results.header.settings, name) for results in (before, after)]
        if values[0] != values[1]:
            yield f"{name}: {values[0]} -> {values[1]}"


def _change(key: Key, before: Line | None, after: Line | None) -> Change | None:
    if before is None or after is None or before.verdict != after.verdict:
        return Change(key, _said(before), _said(after))
    if _moved(before.worst, after.worst):
        return Change(key, _error(before), _error(after), moved=True)
    return None


def _moved(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return low != high and high > MOVED * low


def _said(line: Line | None) -> str:
    if line is None:
        return "absent"
    return f"{line.verdict} ({line.failures[0].came})" if line.failures else line.verdict


def _error(line: Line) -> str:
    return f"{line.worst:.3g} noise units"
