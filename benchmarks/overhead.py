"""How much of a run is spent outside the two encoders.

Prints the time of all checks over the time inside forward passes, the implementation's and the
oracle's. A ratio, since the machines differ:

    python benchmarks/overhead.py --impl=reference --profile=standard
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from conformance.record import Record


class Stopwatch:
    """Gathers the records of a run."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record that a report carries."""
        found = dict(report.user_properties).get("conformance")
        if report.when == "call" and isinstance(found, dict):
            self.records.append(Record.from_json(found))


def main(arguments: list[str]) -> int:
    """Run the main job and print the ratio."""
    stopwatch = Stopwatch()
    checks = str(Path(__file__).parent.parent / "conformance")
    status = pytest.main([checks, "-q", "-p", "no:cacheprovider", *arguments], plugins=[stopwatch])
    total = sum(record.seconds for record in stopwatch.records)
    inside = sum(record.encoders for record in stopwatch.records)
    cases = sum(record.cases for record in stopwatch.records)
    print(f"{cases} cases: {total / inside:.2f} times the time inside the two encoders")
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
