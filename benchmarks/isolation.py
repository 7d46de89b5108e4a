"""What isolation costs: the same tiny cases in this process and in another one.

Prints the median time of a case both ways, the difference in milliseconds, and their ratio:

    python benchmarks/isolation.py
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

from conformance.device import prepare_device
from conformance.driver import Driver
from conformance.isolation.gateway import find_place
from conformance.isolation.remote import RemoteDriver, driver_of, find_anywhere
from conformance.outcome import Outcome
from reference import FAMILIES, EncoderConfig
from strategies import Case, Image, Weights

CASES = 300


def tiny_cases() -> list[Case]:
    """Small requests, each with pixels of its own; weights change every tenth time."""
    found = []
    for index in range(CASES):
        config = EncoderConfig.tiny(FAMILIES[index % len(FAMILIES)])
        side, generator = config.image_size, torch.Generator().manual_seed(index)
        pixels = torch.randn(3, 3, side, side, generator=generator)
        images = [[Image(pixels[0], pixels[1:])]]
        weights = Weights.drawn(config, index // 10)
        found.append(Case(config, weights, ()).regrouped(images))
    return found


def timed(run: Callable[[Case], Outcome], case: Case) -> float:
    """Milliseconds of a case that nothing is remembered of."""
    fresh = case.replace()
    start = time.perf_counter()
    run(fresh)
    return 1000 * (time.perf_counter() - start)


def drivers() -> list[Driver | RemoteDriver]:
    """The reference in this process and in another of the same interpreter."""
    places = [find_place(python, None, timeout=60, restarts=1) for python in (None, sys.executable)]
    return [driver_of(*find_anywhere("reference", place, "cpu")) for place in places]


def main() -> int:
    """Measure both ways in turn, so that whatever else the machine does meets both; print."""
    prepare_device(torch.device("cpu"))
    here, there = drivers()
    cases = tiny_cases()
    for case in cases[-30:]:  # builds the encoders
        here.run(case), there.run(case)
    times = [(timed(here.run, case), timed(there.run, case)) for case in cases]
    there.close()
    one, other = (statistics.median(column) for column in zip(*times, strict=True))
    more = statistics.median(isolated - own for own, isolated in times)
    print(
        f"{CASES} tiny cases: {one:.2f} ms a case here, {other:.2f} ms isolated: "
        f"{more:.2f} ms more, {other / one:.2f} times"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
