"""The challenge, recomputed: the one part that a vendor cannot make up."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import torch

from conformance import package
from conformance.answers import Answer, Answers, file_name, read_answers
from conformance.challenge import Question, challenge, is_nonce
from conformance.document import DocumentError
from conformance.driver import Driver
from conformance.dtypes import DTYPES
from conformance.oracle import Oracle
from conformance.outcome import Returned
from conformance.protocol import Interface
from conformance.registry import find_implementation
from conformance.results import Results
from conformance.rules import Breach
from conformance.trial import LeftOut, Trial
from conformance.verification.layout import Layout

Key = tuple[str, str, str]

_CPU = torch.device("cpu")


@dataclass
class Recomputed:
    """What the verifier's own computation found.

    Attributes:
        right: how many answers are right.
        excused: how many are not, but need a clause that a waiver excuses.
        uncertified: how many are not, in families that do not reach core and do not claim to.
        worst: the largest error of those that are right, in noise units.
        breaches: the others.
    """

    right: int = 0
    excused: int = 0
    uncertified: int = 0
    worst: float = 0.0
    breaches: list[Breach] = field(default_factory=list)


def read_all_answers(
    layout: Layout, results: Results, nonce: str, asked: str | None
) -> Iterator[Answers | Breach]:
    """The answers of a package, as far as they are to the right questions.

    Args:
        layout: of the package.
        results: which families and dtypes there are.
        nonce: that the statement says.
        asked: the nonce that the verifier gave, None if none.
    """
    if not is_nonce(nonce) or asked not in (None, nonce):
        yield Breach("CH-01", f"its nonce is {nonce}, not {asked}", package.STATEMENT)
    settings = results.header.settings
    columns = [(family, dtype) for family in settings.families for dtype in settings.dtypes]
    names = {f"{package.WITNESS}/{file_name(*column)}": column for column in columns}
    for name in layout.sizes:
        if name.startswith(f"{package.WITNESS}/") and name not in names:
            yield Breach("CH-02", "nothing asked for it", name)
    for name, column in names.items():
        if name not in layout.sizes:
            yield Breach("CH-02", "there are no answers", name)
            continue
        try:
            found = read_answers(layout.read(name))
        except DocumentError as error:
            yield Breach("CH-02", str(error), name)
            continue
        if found.challenge != nonce:
            yield Breach("CH-01", f"it answers the nonce {found.challenge}", name)
        elif (found.family, found.dtype) != column:
            yield Breach("CH-02", f"it answers for {found.family} {found.dtype}", name)
        else:
            yield found


def recompute(
    found: Answers,
    interface: Interface,
    waived: Collection[Key],
    certified: bool,
    into: Recomputed,
) -> None:
    """Compare the answers for a family and dtype with the reference on this machine's CPU."""
    name = f"{package.WITNESS}/{found.name}"
    questions = challenge(found.challenge, found.family, found.dtype, interface)
    if [answer.case for answer in found.answers] != [q.case.digest for q in questions]:
        into.breaches.append(Breach("CH-02", "it is not about the cases of its nonce", name))
        return
    dtype = DTYPES[found.dtype]
    oracle = Oracle(dtype, _CPU, always_whole=True)
    trial = Trial(Driver(find_implementation("reference"), _CPU), oracle, found.family, dtype)
    right, excused = 0, 0
    for number, (question, answer) in enumerate(zip(questions, found.answers, strict=True)):
        try:
            rule, message, units = _judged(trial, question, answer)
        except LeftOut:
            continue
        if not rule:
            right += 1
            into.worst = max(into.worst, units if certified else 0.0)
            continue
        if any((clause, found.family, found.dtype) in waived for clause in question.clauses):
            excused += 1
        elif not certified:
            into.uncertified += 1
        else:
            into.breaches.append(Breach(rule, f"answer {number}: {message}", name))
    if certified and excused and not right:
        into.breaches.append(Breach("CH-03", "no answer is right, whatever is waived", name))
    into.right += right if certified else 0
    into.excused += excused


def _judged(trial: Trial, question: Question, answer: Answer) -> tuple[str, str, float]:
    """The rule that an answer breaks, and how; empty if it is right, with its error.

    Raises:
        LeftOut: the reference itself overflows.
    """
    case, tensor = question.case, answer.tensor
    if tensor is None:
        return "CH-03", f"no result came, but {answer.came}", 0.0
    columns = case.config.text_width
    if tensor.dtype != case.dtype or tensor.dim() != 2 or tensor.shape[1] != columns:
        kind = str(tensor.dtype).removeprefix("torch.")
        return "CH-04", f"a {kind} result of shape {tuple(tensor.shape)}", 0.0
    verdict = trial.right(case, Returned(tensor))
    if verdict.passed:
        return "", "", verdict.units
    rule = "CH-03" if verdict.units else "CH-04"
    return rule, f"{verdict.came}; {verdict.where or verdict.expected}", 0.0
