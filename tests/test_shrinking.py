"""What failures shrink to, and that a seed means the same cases everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import find, settings

from reference import EncoderConfig
from strategies import Case, cases

ROOT = Path(__file__).parent.parent

SHRINK = settings(max_examples=300, deadline=None, derandomize=True, database=None)


def smallest(condition: Callable[[Case], bool], **options: Any) -> Case:
    """The case that a failure shrinks to."""
    strategy = cases(grouping=["bundled", "split", "mixed"], images=(1, 4), **options)
    return find(strategy, condition, settings=SHRINK)


def test_failures_shrink_to_one_bare_image() -> None:
    """A failure of every case shrinks to one item with one image and no patch."""
    case = smallest(lambda _: True)
    assert [[image.count for image in group] for group in case.groups] == [[0]]
    assert (case.config.family, case.weights.label) == ("step3", "balanced, seed 0")


@pytest.mark.parametrize("needed", [1, 2])
def test_failures_shrink_to_the_patches_needed(needed: int) -> None:
    """A failure that needs some patches keeps those, in one image of one item."""
    case = smallest(lambda case: sum(image.count for image in case.images) >= needed)
    assert [[image.count for image in group] for group in case.groups] == [[needed]]


def test_failures_shrink_to_the_images_needed() -> None:
    """A failure that needs an image without patches before one with keeps two images."""

    def has_gap(case: Case) -> bool:
        found = [image.count for image in case.images]
        return any(not count and any(found[index:]) for index, count in enumerate(found))

    case = smallest(has_gap)
    assert [[image.count for image in group] for group in case.groups] == [[0, 1]]


def test_failures_shrink_to_the_items_needed() -> None:
    """A failure that needs two items keeps two, of one bare image each."""
    case = smallest(lambda case: len(case.items) > 1)
    assert [[image.count for image in group] for group in case.groups] == [[0], [0]]


def test_failures_shrink_to_the_first_variant() -> None:
    """A failure in one family alone shrinks to its plainest configuration."""
    case = smallest(lambda case: case.config.family == "step3p7")
    assert case.config == EncoderConfig.tiny("step3p7")


DRAWS = """
import sys
if "constants" in sys.argv:
    import many_constants
import torch
from conformance.check import Check
from conformance.driver import Driver
from conformance.adapters.reference import Reference
from conformance.judge import PASSED
from conformance.oracle import Oracle
from conformance.search import Effort, search
from conformance.trial import Trial
from strategies import cases

def holds(trial, case):
    print(case.digest, flush=True)
    return PASSED

cpu = torch.device("cpu")
trial = Trial(Driver(Reference(), cpu), Oracle(torch.float32, cpu), "step3", torch.float32)
search(Check(("EN-01",), holds, cases), trial, Effort(300, seed=5))
"""


def test_a_seed_draws_the_same_whatever_is_imported(tmp_path: Path) -> None:
    """A module of constants, which Hypothesis would draw from, changes no case of a search."""
    numbers = ", ".join(str(number) for number in range(17, 60_000, 211))
    (tmp_path / "many_constants.py").write_text(f"VALUES = [{numbers}]\n", encoding="utf-8")
    (tmp_path / "draws.py").write_text(DRAWS, encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    drawn = [
        subprocess.run(
            [sys.executable, "draws.py", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for arguments in ([], ["constants"])
    ]
    assert len(drawn[0]) > 200
    assert drawn[0] == drawn[1]
