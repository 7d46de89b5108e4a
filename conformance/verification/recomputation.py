"""The challenge, recomputed: the one part that a vendor cannot make up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

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
from conformance.results import Key, Results
from conformance.rules import Breach
from conformance.trial import LeftOut, Trial
from conformance.verification.layout import Layout

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Recomputed:
    """What the verifier's own computation found.

    Attributes:
        right: how many answers of certified families are right.
        excused: how many are not, but need a clause that a waiver excuses.
        uncertified: how many are not, in families that do not reach core and do not claim to.
        worst: the largest error of those that are right, in noise units.
        breaches: the others.
    """

    right: int = 0
    excused: int = 0
    uncertified: int = 0
    worst: float = 0.0
    breaches: tuple[Breach, ...] = ()


def together(parts: Iterable[Recomputed]) -> Recomputed:
    """What was found of several families and dtypes."""
    found = list(parts)
    return Recomputed(
        sum(part.right for part in found),
        sum(part.excused for part in found),
        sum(part.uncertified for part in found),
        max((part.worst for part in found), default=0.0),
        tuple(breach for part in found for breach in part.breaches),
    )


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
    found: Answers, interface: Interface, waived: Collection[Key], certified: bool
) -> Recomputed:
    """Compare the answers for a family and dtype with the reference on this machine's CPU.

    Args:
        found: the answers.
        interface: that the questions were put to.
        waived: keys of the lines that a waiver excuses.
        certified: whether the family reaches core.
    """
    name = f"{package.WITNESS}/{found.name}"
    questions = challenge(found.challenge, found.family, found.dtype, interface)
    if [answer.case for answer in found.answers] != [q.case.digest for q in questions]:
        return Recomputed(
            breaches=(Breach("CH-02", "it is not about the cases of its nonce", name),)
        )
    dtype = DTYPES[found.dtype]
    oracle = Oracle(dtype, _CPU, always_whole=True)
    trial = Trial(Driver(find_implementation("reference"), _CPU), oracle, found.family, dtype)
    right, excused, wrong = [], 0, []
    for number, (question, answer) in enumerate(zip(questions, found.answers, strict=True)):
        try:
            judged = _judged(trial, question, answer)
        except LeftOut:
            continue
        if not judged.rule:
            right.append(judged.units)
        elif any((clause, found.family, found.dtype) in waived for clause in question.clauses):
            excused += 1
        else:
            wrong.append(Breach(judged.rule, f"answer {number}: {judged.message}", name))
    if not certified:
        return Recomputed(excused=excused, uncertified=len(wrong))
    if excused and not right:
        wrong.append(Breach("CH-03", "no answer is right, whatever is waived", name))
    return Recomputed(len(right), excused, 0, max(right, default=0.0), tuple(wrong))


@dataclass(frozen=True)
class _Judged:
    """The rule that an answer breaks, and how; empty if it is right, with its error."""

    rule: str = ""
    message: str = ""
    units: float = 0.0


def _judged(trial: Trial, question: Question, answer: Answer) -> _Judged:
    """Judge one answer.

    Raises:
        LeftOut: the reference itself overflows.
    """
    case, tensor = question.case, answer.tensor
    if tensor is None:
        return _Judged("CH-03", f"no result came, but {answer.came}")
    columns = case.config.text_width
    if tensor.dtype != case.dtype or tensor.dim() != 2 or tensor.shape[1] != columns:
        kind = str(tensor.dtype).removeprefix("torch.")
        return _Judged("CH-04", f"a {kind} result of shape {tuple(tensor.shape)}")
    verdict = trial.right(case, Returned(tensor))
    if verdict.passed:
        return _Judged(units=verdict.units)
    rule = "CH-03" if verdict.units else "CH-04"
    return _Judged(rule, f"{verdict.came}; {verdict.where or verdict.expected}")
