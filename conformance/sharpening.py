"""Choosing the corpus: the fewest small cases that show every planted fault of a family."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from conformance.check import Check, all_checks
from conformance.corpus import Sharp
from conformance.device import prepare_device
from conformance.driver import Driver
from conformance.oracle import Oracle
from conformance.power import Planted, read_catalogue
from conformance.search import PROFILES, Effort, judged, search, size
from conformance.trial import LeftOut, NotOffered, Trial
from strategies import Case

_EFFORT = Effort(PROFILES["standard"], sharp=False)


def sharpest(catalogue: str, family: str) -> list[Sharp]:
    """The cases to freeze for a family, check by check.

    Every fault of the catalogue is searched for with the checks of its own clause; of the cases
    that it shrinks to, the fewest are kept that show all faults which a check can show.
    """
    device = torch.device("cpu")
    prepare_device(device)
    oracle = Oracle(torch.float32, device)
    candidates: dict[str, dict[Case, None]] = defaultdict(dict)
    shown_by: dict[str, list[Trial]] = defaultdict(list)
    for fault in read_catalogue(catalogue):
        if family not in fault.families or torch.float32 not in fault.dtypes:
            continue
        trial = Trial(Driver(Planted(fault), device), oracle, family, torch.float32)
        for check in _checks_of(fault.clause, family):
            found = search(check, trial, _EFFORT)
            if found.case is not None and not found.stateful:
                candidates[check.name][found.case] = None
                shown_by[check.name].append(trial)
    return [
        Sharp(check.name, case)
        for check in all_checks()
        for case in _cover(check, candidates[check.name], shown_by[check.name])
    ]


def _checks_of(clause: str, family: str) -> Iterable[Check]:
    return (c for c in all_checks() if clause in c.clauses and c.applies(family, "items", "cpu"))


def _cover(check: Check, candidates: Mapping[Case, Any], trials: Iterable[Trial]) -> list[Case]:
    """The fewest cases that show all faults, greedily; of equals the smallest."""
    shown = {
        case: {index for index, trial in enumerate(trials) if _shows(check, trial, case)}
        for case in sorted(candidates, key=lambda case: (size(case), case.digest))
    }
    chosen: list[Case] = []
    missing: set[int] = set().union(*shown.values())
    while missing:
        best = max(shown, key=lambda case: len(shown[case] & missing))
        chosen.append(best)
        missing -= shown[best]
    return chosen


def _shows(check: Check, trial: Trial, case: Case) -> bool:
    try:
        verdict, _ = judged(check, trial, case)
    except (LeftOut, NotOffered):
        return False
    return not verdict.passed
