"""The same encoder, one block deeper: what tells a wrong part from a wrong number of blocks."""

from __future__ import annotations

from conformance.judge import Verdict
from conformance.trial import Trial
from reference.instrument import Instrument
from strategies import Case, Weights


def deeper(case: Case, *, first: bool = False) -> Case:
    """Add a block that changes nothing, however wrong the arithmetic outside it may be.

    Args:
        case: of one block.
        first: put the new block before the other, not behind it.

    Its branches end in zeros. An encoder that drops its last block, or uses one block's weights
    for all, answers this case and the original differently; one that computes a part wrongly
    gets both wrong.
    """
    last = case.config.layers - 1
    config = case.config.replace(layers=case.config.layers + 1)
    tensors = dict(case.weights)
    for name, tensor in case.weights.items():
        tensors[name.replace(f".{last}.", f".{last + 1}.", 1)] = tensor
    instrument = Instrument(config, 0, tensors)
    instrument.kill(last if first else last + 1)
    weights = Weights(tensors, f"{case.weights.label}, a dead block added")
    return case.replace(config=config, weights=weights)


def isolated(trial: Trial, case: Case) -> Verdict:
    """Wrong with one block, and wrong with a dead block behind it, and before it.

    Only all together say that the part under test is wrong; a dropped or shared block, which is
    another fault, passes one of them.
    """
    verdict = trial.right(case)
    for deep in (deeper(case), deeper(case, first=True)):
        if not verdict.passed:
            verdict = trial.right(deep)
    return verdict
