"""Calibration: how near right encoders come to the limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from conformance.check import all_checks
from conformance.device import prepare_device
from conformance.driver import Driver
from conformance.judge import Distance, limits
from conformance.options import DTYPES
from conformance.oracle import Oracle
from conformance.power import Planted, Subject, read_catalogue
from conformance.search import PROFILES, Effort, search
from conformance.trial import Trial

_GROUPS = ("EN", "LA", "BA", "MA", "SE")


@dataclass(frozen=True)
class Reading:
    """The largest errors of a right encoder, in units of noise.

    Attributes:
        subject: the encoder, family, dtype and seed.
        row: the largest RMS error of a row.
        element: the largest error of an element.
        judged: how many comparisons were made.
    """

    subject: Subject
    row: float
    element: float
    judged: int


class Gauge(Trial):
    """A trial that always measures the whole noise, and keeps the largest errors."""

    row = 0.0
    element = 0.0
    judged = 0

    def watch(self, found: Distance) -> None:
        """Keep the largest errors; those between two noisy results count half."""
        sides = found.limits.row / limits(self.dtype).row
        self.row = max(self.row, found.units / sides)
        self.element = max(self.element, float(found.element_units.max()) / sides)
        self.judged += 1


def read(subject: Subject) -> Reading:
    """Run a right encoder through the checks."""
    entry = next(e for e in read_catalogue(subject.catalogue) if e.name == subject.name)
    device, dtype = torch.device("cpu"), DTYPES[subject.dtype]
    prepare_device(device)
    oracle = Oracle(dtype, device, always_whole=True)
    gauge = Gauge(Driver(Planted(entry), device), oracle, subject.family, dtype)
    effort = Effort(PROFILES[subject.profile], subject.seed, shrink=False)
    for check in all_checks():
        in_group = check.clauses[0].startswith(_GROUPS)
        if in_group and check.applies(subject.family, "items", device.type):
            search(check, gauge, effort)
    return Reading(subject, gauge.row, gauge.element, gauge.judged)


def comfortable(reading: Reading) -> bool:
    """Whether a right encoder stays within half of the limits."""
    allowed = limits(DTYPES[reading.subject.dtype])
    return reading.row <= allowed.row / 2 and reading.element <= allowed.element / 2


def compared(readings: Sequence[Reading]) -> list[str]:
    """A line for each dtype: the limits, what was recorded, and what was read now."""
    lines = []
    for dtype in dict.fromkeys(reading.subject.dtype for reading in readings):
        own = [reading for reading in readings if reading.subject.dtype == dtype]
        row = max(own, key=lambda reading: reading.row)
        element = max(own, key=lambda reading: reading.element)
        recorded, judged = limits(DTYPES[dtype]), sum(reading.judged for reading in own)
        lines += [
            f"{dtype}: {judged} comparisons",
            f"  row      limit {recorded.row:g}, recorded {recorded.highest_row:g}, "
            f"now {row.row:.2f} ({row.subject.name}, {row.subject.family})",
            f"  element  limit {recorded.element:g}, recorded {recorded.highest_element:g}, "
            f"now {element.element:.2f} ({element.subject.name}, {element.subject.family})",
        ]
    return lines
