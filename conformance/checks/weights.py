"""WE: weights under their published names."""

from __future__ import annotations

import re
from collections.abc import Iterator

import torch
from torch import Tensor

from conformance.check import check
from conformance.checks.patches import MORE_DIGITS
from conformance.judge import PASSED, Verdict, failed, worst, wrong
from conformance.outcome import Raised, Returned, as_rows
from conformance.trial import Trial, parts
from reference.stream import bell
from strategies import Case, Weights, cases

# A small encoder and a large one, whose square matrices differ from their transposes.
_VARIANTS = [{"projector_bias": True}, {"projector_bias": True, "image_size": 10, "layers": 1}]


@check("WE-01", given=cases, images=(1, 1), patches=(0, 0), variants=_VARIANTS)
def we_01_every_tensor_is_used(trial: Trial, case: Case) -> Verdict:
    """Perturbing any whole tensor changes the result."""
    outcome = trial.run(case, fresh=True)
    if not isinstance(outcome, Returned):
        return failed("a result", outcome)
    rows = as_rows(outcome.tensor)
    for label, changes in perturbations(case.weights):
        weights = case.weights.replace(changes, f"{label} perturbed")
        other = trial.run(case.replace(weights=weights))
        if not isinstance(other, Returned):
            return failed(f"a result with {label} perturbed", other)
        if unchanged(trial, case, as_rows(other.tensor), rows):
            return wrong(f"another result with {label} perturbed", "the same result")
    return PASSED


def perturbations(weights: Weights) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Every whole tensor perturbed, and each third of the fused ones that has an effect alone."""
    for name, tensor in weights.items():
        change = bell(1, name, tensor.shape, 0.5)
        yield name, {name: tensor + change}
        if "qkv_proj" in name or "in_proj" in name:
            thirds = {"queries": 0, "keys": 1, "values": 2}
            if name.endswith("bias"):
                del thirds["keys"]  # a constant added to all scores of a query has no effect
            for part, index in thirds.items():
                own = torch.zeros_like(change)
                own.chunk(3)[index].copy_(change.chunk(3)[index])
                yield f"{name} ({part})", {name: tensor + own}


@check("WE-01", given=cases, after=["EN-01"], images=(1, 1), patches=(0, 0), variants=_VARIANTS)
def we_01_every_digit_is_used(trial: Trial, case: Case) -> Verdict:
    """Weights that need more digits than bfloat16 has keep them."""
    finer = {name: tensor * MORE_DIGITS for name, tensor in case.weights.items()}
    return trial.right(case.replace(weights=Weights(finer, f"{case.weights.label}, more digits")))


def unchanged(trial: Trial, case: Case, rows: Tensor, before: Tensor) -> bool:
    """Whether rows are the same: in every bit on the CPU, within noise elsewhere.

    A tensor that is not used leaves every bit as it was, and a CPU gives the same bits twice
    (SE-02); in low precision the effect of a tensor that is used may be less than the noise.
    """
    if trial.device.type == "cpu":
        return rows.shape == before.shape and torch.equal(rows, before)
    return trial.distance(case, parts(case), rows, before).close


def kinds(case: Case) -> list[str]:
    """The name of one tensor of each kind; of which layer depends on the case alone."""
    found: dict[str, list[str]] = {}
    for name in sorted(case.weights):
        found.setdefault(re.sub(r"\d+", "0", name), []).append(name)
    return [names[int(case.digest, 16) % len(names)] for names in found.values()]


def refused(trial: Trial, case: Case, weights: dict[str, Tensor], label: str) -> Verdict:
    """Weights that do not fit are an error, of whatever stage."""
    outcome = trial.run(case.replace(weights=Weights(weights, label)), fresh=True)
    if isinstance(outcome, Raised):
        return Verdict(True, note=outcome.type)
    return failed(f"an error, with {label}", outcome)


@check("WE-02", given=cases, images=(1, 1), patches=(0, 0))
def we_02_a_missing_tensor(trial: Trial, case: Case) -> Verdict:
    """A missing vision tensor is an error."""

    def without(name: str) -> Verdict:
        rest = {key: tensor for key, tensor in case.weights.items() if key != name}
        return refused(trial, case, rest, f"{name} missing")

    return worst(without(name) for name in kinds(case))


@check("WE-02", given=cases, images=(1, 1), patches=(0, 0))
def we_02_an_unknown_tensor(trial: Trial, case: Case) -> Verdict:
    """A vision tensor that the encoder has no place for is an error."""
    name = "vision_model.unknown.weight"
    return refused(trial, case, {**case.weights, name: torch.ones(4)}, f"{name} added")


@check("WE-02", given=cases, images=(1, 1), patches=(0, 0))
def we_02_a_tensor_of_the_wrong_shape(trial: Trial, case: Case) -> Verdict:
    """A vision tensor of the wrong shape is an error."""

    def longer(name: str) -> Verdict:
        tensor = case.weights[name]
        weights = {**case.weights, name: torch.cat([tensor, tensor[:1]])}
        return refused(trial, case, weights, f"{name} one row longer")

    return worst(longer(name) for name in kinds(case))


@check("WE-03", given=cases, images=(1, 1), patches=(0, 0))
def we_03_prefixed_names(trial: Trial, case: Case) -> Verdict:
    """Names with the prefix `model.` load to the same result."""
    prefixed = {f"model.{name}": tensor for name, tensor in case.weights.items()}
    other = case.replace(weights=Weights(prefixed, f"{case.weights.label}, prefixed"))
    expected = trial.run(case, fresh=True)
    return trial.same(case, trial.run(other, fresh=True), expected)
