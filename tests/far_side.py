"""Drivers of `unruly` in another interpreter, and what to ask of it."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from conformance.isolation.gateway import find_place
from conformance.isolation.remote import (
    RemoteDriver,
    driver_of,
    find_anywhere,
)
from conformance.outcome import Outcome, Raised, Returned
from reference import EncoderConfig, ImageItem
from strategies import Case, Weights

UNRULY = f"{Path(__file__).parent / 'unruly.py'}:unruly"
CONFIG = EncoderConfig.tiny("step3-vl-10b")
SECONDS = 8.0


def asks(do: str | None = None, seed: int = 0) -> Case:
    """A case that tells the unruly encoder what to do."""
    item = ImageItem(torch.zeros(1, 3, 8, 8), {"num_patches": [0], "do": do})
    return Case(CONFIG, Weights.drawn(CONFIG, seed), (item,))


def start(impl: str = UNRULY, *, gateway: str | None = None, restarts: int = 99) -> RemoteDriver:
    """A driver of an implementation in another process of this interpreter."""
    python = sys.executable if gateway is None else None
    place = find_place(python, gateway, timeout=SECONDS, restarts=restarts)
    driver = driver_of(*find_anywhere(impl, place, "cpu"))
    assert isinstance(driver, RemoteDriver)
    return driver


def answers(driver: RemoteDriver) -> bool:
    """Whether an ordinary call gives the right result."""
    outcome = driver.run(asks())
    return isinstance(outcome, Returned) and torch.equal(outcome.tensor, torch.ones(1, 12))


def said(outcome: Outcome) -> str:
    """What the encoder raised to tell us something."""
    assert isinstance(outcome, Raised), outcome
    return outcome.message
