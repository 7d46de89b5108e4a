"""The waivers of a package."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence

from conformance import package
from conformance.results import Results
from conformance.rules import Breach
from conformance.waivers import Waiver, device_type


def check_waivers(
    waivers: Sequence[Waiver], data: bytes, results: Results, today: datetime.date
) -> Iterator[Breach]:
    """Each waiver by itself and against its line.

    Args:
        waivers: of the package.
        data: the file that they were read from.
        results: of the run.
        today: on which they must not have expired.
    """
    places = _places(data)
    lines = {line.key: line for line in results.lines}
    version, device = results.header.implementation.version, device_type(results)
    times = Counter(waiver.key for waiver in waivers)
    for number, waiver in enumerate(waivers):
        place = places[number] if number < len(places) else 0
        line = lines.get(waiver.key)
        if reason := waiver.too_wide():
            yield _breach("WA-04", waiver, reason, place)
        if waiver.expires < today:
            yield _breach("WA-02", waiver, f"it expired on {waiver.expires}", place)
        if times[waiver.key] > 1:
            yield _breach("WA-06", waiver, "another is about the same line", place)
        if not waiver.covers(version, device):
            about = f"{waiver.releases} on {waiver.device}, not {version} on {device}"
            yield _breach("WA-03", waiver, f"it is about {about}", place)
        elif waiver.clause and (line is None or not line.bad):
            yield _breach("WA-03", waiver, "its line did not fail", place)
        elif line is not None and not waiver.matches(line):
            cases = ", ".join(sorted({found.digest for found in line.failures}))
            yield _breach("WA-05", waiver, f"its line fails with {cases}", place)


def _places(data: bytes) -> list[int]:
    """The lines on which the entries of a file start."""
    texts = enumerate(data.decode().split("\n"), 1)
    return [place for place, text in texts if text.split("#")[0].strip() == "[[waiver]]"]


def _breach(rule: str, waiver: Waiver, message: str, place: int) -> Breach:
    return Breach(rule, f"the waiver of {waiver}: {message}", package.WAIVERS, place)
