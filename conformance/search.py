"""The search: draws cases for a check, and keeps the smallest that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import zlib
from dataclasses import dataclass, field
from typing import Literal

import hypothesis
import torch
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from conformance.check import Check
from conformance.corpus import sharp_cases
from conformance.judge import PASSED, Verdict
from conformance.trial import LeftOut, NotOffered, Trial
from reference import ImageItem
from strategies import Case

PROFILES = {"smoke": 2, "standard": 10, "certify": 50}

# Attempts, not seconds, so that a run gives the same case on any machine.
SHRINK_ATTEMPTS = 80

# A process that ends or hangs costs seconds, so few of a check's attempts may end one.
RESTARTS = 4

_LOW_PRECISION = (torch.bfloat16, torch.float16)

# In low precision an error up to twice the limit must show on one of three derived cases too.
_DOUBTFUL = 2.0
_CONFIRMATIONS = 3


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Attributes:
        examples: how many cases to draw; 0 leaves it at the sharp ones.
        seed: which ones.
        shrink: whether to look for a smaller failure.
        sharp: whether to begin with the frozen sharp cases.
    """

    examples: int
    seed: int = 0
    shrink: bool = True
    sharp: bool = True


@dataclass
class Search:
    """What a search found.

    Attributes:
        cases: how many were judged before the first failure, that one included.
        left_out: how many said nothing because the reference overflows in the dtype.
        units: the largest error of those that passed, in units of noise.
        case: the smallest that failed, None if none did.
        verdict: on that case, or a pass.
        notes: of the cases that passed, without repetition.
        stateful: whether the failure shows only after earlier calls on the same encoder.
        refused: how the implementation refuses the configuration; empty if it does not.
    """

    cases: int = 0
    left_out: int = 0
    units: float = 0.0
    case: Case | None = None
    verdict: Verdict = PASSED
    notes: dict[str, None] = field(default_factory=dict)
    stateful: bool = False
    refused: str = ""


class _Found(Exception):  # noqa: N818
    """A case fails; tells Hypothesis to shrink."""


def search(check: Check, trial: Trial, effort: Effort) -> Search:
    """Judge the frozen sharp cases, then draw others until one fails; shrink that one.

    A sharp case that fails is not shrunk: it is small.
    """
    found = Search()
    if effort.sharp:
        for case in sharp_cases(check.name, trial.family, trial.dtype):
            if not found.refused and _attempt(found, check, trial, case) == "failed":
                return found
    if effort.examples and not found.refused:
        _draw(found, check, trial, effort)
    return found


def _draw(found: Search, check: Check, trial: Trial, effort: Effort) -> None:
    attempts = 0
    restarts = trial.driver.restarts

    def judge(case: Case) -> None:
        nonlocal attempts
        attempts += found.case is not None
        costly = trial.driver.restarts - restarts >= RESTARTS or trial.driver.given_up
        if costly or attempts > SHRINK_ATTEMPTS or found.refused:
            return
        said = _attempt(found, check, trial, case)
        if said == "nothing":
            hypothesis.reject()
        if said == "failed":
            raise _Found

    _forget_local_constants()
    # No Phase.target: it would let an implementation's rounding decide which cases are drawn.
    phases = [Phase.generate] + ([Phase.shrink] if effort.shrink else [])
    settings = hypothesis.settings(
        max_examples=effort.examples * check.effort,
        phases=phases,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    drawn = hypothesis.given(check.cases(trial.family, trial.dtype))(judge)
    label = f"{effort.seed}/{check.name}/{trial.family}/{trial.dtype}"
    with contextlib.suppress(_Found, Flaky, Unsatisfiable):
        hypothesis.seed(zlib.crc32(label.encode()))(settings(drawn))()


def _attempt(
    found: Search, check: Check, trial: Trial, case: Case
) -> Literal["passed", "failed", "nothing", "refused"]:
    """Judge one case, and keep what came of it; of those that fail the smallest."""
    shrinking = found.case is not None
    try:
        verdict, stateful = judged(check, trial, case)
    except LeftOut:
        found.left_out += not shrinking
        return "nothing"
    except NotOffered as refusal:
        found.refused = str(refusal)
        return "refused"
    if not shrinking:
        _count(found, verdict)
    if verdict.passed:
        return "passed"
    if found.case is None or size(case) <= size(found.case):
        found.case, found.verdict, found.stateful = case, verdict, stateful
    return "failed"


def judged(check: Check, trial: Trial, case: Case) -> tuple[Verdict, bool]:
    """The verdict on a case, and whether a failure depends on earlier calls.

    A failure is judged again on a new encoder. One that is gone then is still a failure, of the
    state that an encoder keeps (SE-08), which a replay of the case alone cannot show.
    """
    verdict = confirmed(check, trial, case)
    if verdict.passed:
        return verdict, False
    trial.driver.forget()
    again = confirmed(check, trial, case)
    if not again.passed:
        return again, False
    return dataclasses.replace(verdict, excess=math.inf), True


def doubt(dtype: torch.dtype) -> float:
    """How many times its limit an error may be and still be doubtful; 1 leaves no doubt."""
    return _DOUBTFUL if dtype in _LOW_PRECISION else 1.0


def confirmed(check: Check, trial: Trial, case: Case) -> Verdict:
    """The verdict on a case; doubtful ones in low precision are tried again on derived cases."""
    verdict = check.holds(trial, case)
    if verdict.passed or not 0 < verdict.excess <= doubt(trial.dtype):
        return verdict
    again = [check.holds(trial, derived(case, turn)) for turn in range(_CONFIRMATIONS)]
    if any(not other.passed for other in again):
        return verdict
    return Verdict(True, verdict.units, note="a doubtful error did not show on derived cases")


def derived(case: Case, turn: int) -> Case:
    """The same case with every picture turned over: up-down, left-right or both."""
    axes = ((-2,), (-1,), (-2, -1))[turn]

    def turned(item: ImageItem) -> ImageItem:
        data = dict(item.model_specific_data)
        patches = data.get("patch_pixel_values")
        if isinstance(patches, torch.Tensor) and patches.dim() > 1:
            data["patch_pixel_values"] = patches.flip(axes)
        return ImageItem(item.feature.flip(axes), data)

    return case.replace(items=tuple(turned(item) for item in case.items))


def size(case: Case) -> tuple[int, int, int]:
    """How large a case is for a reader: items, pictures, numbers."""
    tensors = [item.feature for item in case.items]
    for item in case.items:
        patches = item.model_specific_data.get("patch_pixel_values")
        tensors += [patches] if isinstance(patches, torch.Tensor) else []
    pictures = sum(tensor.shape[0] if tensor.dim() else 1 for tensor in tensors)
    numbers = sum(tensor.numel() for tensor in tensors)
    return len(case.items), pictures, numbers + sum(t.numel() for t in case.weights.values())


def _count(found: Search, verdict: Verdict) -> None:
    found.cases += 1
    if verdict.passed:
        found.units = max(found.units, verdict.units)
        if verdict.note:
            found.notes[verdict.note] = None


def _forget_local_constants() -> None:
    """Keep Hypothesis from mixing numbers of local source files into its draws.

    It reads them from whatever modules happen to be imported, so that the same seed would draw
    other cases with another implementation, or with the suite installed in another way.
    """
    providers.HypothesisProvider._local_constants = property(lambda _: Constants())  # type: ignore[assignment]
