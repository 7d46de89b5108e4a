"""Runs the suite as its users do, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)

ROOT = Path(__file__).parent.parent
MINIATURES = Path(__file__).parent / "miniatures.py"

_ROW = re.compile(r"^ ([A-Z]{2}-\d\d) +\S.*?  +(\S.*)$")


@dataclass(frozen=True)
class Run:
    """What a run printed and its exit status."""

    status: int
    output: str

    @property
    def table(self) -> dict[str, list[str]]:
        """The cells of each clause, in the order of the columns."""
        rows = [_ROW.match(line) for line in self.output.splitlines()]
        return {row[1]: re.split(r"  +", row[2].strip()) for row in rows if row}

    def marked(self, mark: str) -> set[str]:
        """The clauses with a mark in any column."""
        return {
            clause
            for clause, cells in self.table.items()
            if any(cell.split()[0] == mark for cell in cells)
        }


def in_a_process(folder: Path, *arguments: str) -> Run:
    """Run a Python module in a folder, with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return Run(done.returncode, done.stdout + done.stderr)


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., Run]:
    """Run the main job on a miniature: `check("right", "--profile=smoke")`."""

    def run(miniature: str, *options: str) -> Run:
        impl = f"--impl={MINIATURES}:{miniature}"
        base = ("pytest", str(ROOT / "conformance"), "-q", "-p", "no:cacheprovider", impl)
        return in_a_process(tmp_path, *base, *options)

    return run


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Run]:
    """Run `python -m conformance`."""
    return lambda *arguments: in_a_process(tmp_path, "conformance", *arguments)
