"""A trial: one implementation, family and dtype; what a check asks its questions of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from conformance.driver import Driver, Observation
from conformance.isolation.remote import RemoteDriver
from conformance.judge import PASSED, Distance, Verdict, distance, failed, loud, wrong
from conformance.oracle import Oracle
from conformance.outcome import Outcome, Raised, Returned, as_rows, joined, unbuilt
from strategies import Case, Image

Matching = Literal["kind", "type", "message"]


class LeftOut(Exception):  # noqa: N818
    """A case says nothing here, because the reference itself overflows in the dtype."""


class NotOffered(Exception):  # noqa: N818
    """The implementation refuses a configuration that no published checkpoint has."""


@dataclass(frozen=True)
class Part:
    """One picture of a request and its place in the result.

    Attributes:
        label: such as `image 1 patch 0`.
        picture: `(3, H, W)`, in the model's dtype.
        rows: how many rows it yields.
    """

    label: str
    picture: Tensor
    rows: int


def parts(case: Case) -> list[Part]:
    """The pictures of a well-formed case in the order of the result (LA-02, LA-03)."""
    found = []
    for index, image in enumerate(case.images):
        names = [f"image {index} patch {patch}" for patch in range(image.count)]
        for label, picture in zip(
            [*names, f"image {index} thumbnail"], image.pictures, strict=True
        ):
            rows = case.config.rows(*picture.shape[1:])
            found.append(Part(label, picture.detach().to(case.dtype), rows))
    return found


class Trial:
    """Runs cases on the implementation and judges what comes.

    Attributes:
        family: under test.
        dtype: of the models.
        device: of the models.
    """

    def __init__(
        self,
        driver: Driver | RemoteDriver,
        oracle: Oracle,
        family: str,
        dtype: torch.dtype,
        matching: Matching = "type",
    ) -> None:
        self.driver = driver
        self.oracle = oracle
        self.family = family
        self.dtype = dtype
        self.device = driver.device
        self.matching = matching

    def run(self, case: Case, *, fresh: bool = False) -> Outcome:
        """The outcome of one call; `fresh` builds a new encoder for it."""
        return self.driver.run(case, fresh=fresh)

    def sequence(self, *cases: Case, fresh: bool = False) -> list[Outcome]:
        """The outcomes of several calls, read after the last of them."""
        return self.driver.sequence(cases, fresh=fresh)

    def observe(self, case: Case) -> Observation:
        """The outcome of one call and its side effects."""
        return self.driver.observe(case)

    def alone(self, case: Case, image: Image) -> Outcome:
        """The outcome of a call with a single image."""
        return self.run(case.regrouped([[image]]))

    def require_offered(self, case: Case) -> None:
        """Ask for an encoder of a configuration that no published checkpoint of the family has.

        Raises:
            NotOffered: the implementation refuses to build it; the message says how.
        """
        outcome = self.run(case)
        if isinstance(outcome, Raised) and unbuilt(outcome):
            raise NotOffered(str(outcome))

    def pictures_alone(self, case: Case, image: Image) -> Outcome:
        """The rows of one image, each of its pictures sent alone as a thumbnail (LA-02)."""
        return joined([self.alone(case, Image(picture)) for picture in image.pictures])

    def right(self, case: Case, outcome: Outcome | None = None) -> Verdict:
        """Judge a result by the float64 reference.

        Args:
            case: well-formed.
            outcome: of the case; None runs it.
        """
        return self._judge(case, parts(case), self.run(case) if outcome is None else outcome, None)

    def same(self, case: Case, outcome: Outcome, expected: Outcome) -> Verdict:
        """Judge a result by another of the implementation, within the noise of both.

        Args:
            case: well-formed, whose images in their order make both results.
            outcome: to judge.
            expected: to judge it by.
        """
        return self.same_parts(case, parts(case), outcome, expected)

    def same_parts(
        self, case: Case, pictures: Sequence[Part], outcome: Outcome, expected: Outcome
    ) -> Verdict:
        """As `same`, for results that are made of some pictures in some order."""
        if not isinstance(expected, Returned):
            if not isinstance(outcome, Returned):
                return failed(
                    "a result; the plain form of the same images gives none either", outcome
                )
            return failed("a result, of the plain form of the same images", expected)
        return self._judge(case, pictures, outcome, as_rows(expected.tensor))

    def raises(self, outcome: Outcome, kind: type[Exception], message: str) -> Verdict:
        """Judge a documented error: its class, and its message where that is asked for."""
        if not isinstance(outcome, Raised) or outcome.stage != "call":
            return failed(f'{kind.__name__}("{message}")', outcome)
        if self.matching != "kind" and not outcome.is_a(kind):
            return failed(f"{kind.__name__} or a subclass", outcome)
        if self.matching == "message" and outcome.message != message:
            return failed(f'the message "{message}"', outcome)
        return Verdict(True, note=f"{outcome.type}: {outcome.message}")

    def rejected(self, outcome: Outcome, why: str) -> Verdict:
        """Judge malformed input: any exception of the call will do."""
        if isinstance(outcome, Raised) and outcome.stage == "call":
            return Verdict(True, note=outcome.type)
        return failed(f"an error, for {why}", outcome)

    def right_or_rejected(self, case: Case) -> Verdict:
        """Judge geometry that published code does not handle."""
        outcome = self.run(case)
        if isinstance(outcome, Raised) and outcome.stage == "call":
            return Verdict(True, note=outcome.type)
        return self.right(case, outcome)

    def watch(self, found: Distance) -> None:
        """Called with every distance that is judged; for those who measure the suite itself."""

    def distance(
        self, case: Case, pictures: Sequence[Part], actual: Tensor, expected: Tensor | None
    ) -> Distance:
        """How far rows are from others, or from the float64 reference if `expected` is None."""
        tensors = [part.picture for part in pictures]
        truth = self.oracle.truth(case.config, case.weights, tensors)
        sides = 1 if expected is None else 2

        def measure() -> Distance:
            against = truth.rows if expected is None else expected
            return distance(actual, against, truth.unit, self.dtype, sides=sides)

        found = measure()
        if loud(found, truth):
            truth = self.oracle.truth(case.config, case.weights, tensors, whole=True)
            found = measure()
        if not bool(truth.unit.isfinite().all()):
            raise LeftOut
        return found

    def _judge(
        self, case: Case, pictures: Sequence[Part], outcome: Outcome, expected: Tensor | None
    ) -> Verdict:
        count = sum(part.rows for part in pictures)
        shape = (count, case.config.text_width)
        if not isinstance(outcome, Returned):
            return failed(f"a result of shape {shape}", outcome)
        actual = as_rows(outcome.tensor)
        if expected is not None and torch.equal(actual, expected):
            return PASSED  # of the wrong shape, it may be; that is LA-01's affair
        if tuple(actual.shape) != shape:
            return wrong(f"a result of shape {shape}", outcome)
        if expected is not None and tuple(expected.shape) != shape:
            other = f"one of shape {tuple(expected.shape)} in another form"
            return wrong(f"a result of shape {shape}", other)
        found = self.distance(case, pictures, actual, expected)
        self.watch(found)
        if found.close:
            return Verdict(True, found.units)
        by = "the float64 reference" if expected is None else "the same images in another form"
        return Verdict(
            False,
            found.units,
            expected=f"rows within {found.limits.row:g} noise units of {by}",
            came=_difference(found),
            where=_where(found, pictures),
            excess=float(found.excess.max()),
        )


def _difference(found: Distance) -> str:
    wrong = int((found.excess > 1).sum())
    total = len(found.excess)
    strange = int((~found.row_units.isfinite()).sum())
    if strange:
        return f"{wrong} of {total} rows differ, {strange} of them are not finite"
    return f"{wrong} of {total} rows differ, by up to {found.units:.3g} noise units"


def _where(found: Distance, pictures: Sequence[Part]) -> str:
    """The parts that differ, with their rows."""
    places, start = [], 0
    for part in pictures:
        wrong = (found.excess[start : start + part.rows] > 1).nonzero().flatten().tolist()
        if wrong:
            which = f"row {start + wrong[0]}"
            if len(wrong) > 1:
                which = f"rows {start + wrong[0]} to {start + wrong[-1]}"
            places.append(f"{part.label} ({which})")
        start += part.rows
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return ", ".join(places[:3]) + more
