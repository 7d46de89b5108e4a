"""BA: what shares a call does not matter."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from conformance.check import check
from conformance.judge import PASSED, Distance, Verdict, failed, worst, wrong
from conformance.outcome import Outcome, Returned, as_rows
from conformance.trial import Part, Trial, parts
from strategies import Case, Image, cases, paint


def company(**options: Any) -> st.SearchStrategy[Case]:
    """One item of several images without patches."""
    return cases(**{"images": (2, 4), "patches": (0, 0), **options})


def blocks(pictures: list[Part], outcome: Outcome) -> list[Tensor] | None:
    """The rows of each picture, None if the outcome is not a result of that many rows."""
    if not isinstance(outcome, Returned):
        return None
    rows, sizes = as_rows(outcome.tensor), [part.rows for part in pictures]
    return list(rows.split(sizes)) if len(rows) == sum(sizes) else None


def no_blocks(pictures: list[Part], outcome: Outcome) -> Verdict:
    """The failure of an outcome that `blocks` cannot take apart."""
    expected = f"a result of {sum(part.rows for part in pictures)} rows"
    return (wrong if isinstance(outcome, Returned) else failed)(expected, outcome)


def occurs(trial: Trial, case: Case, part: Part, places: list[Tensor], alone: Outcome) -> Verdict:
    """In one of some places stand the rows that a picture gives alone."""
    if not isinstance(alone, Returned):
        return failed(f"a result for {part.label} alone", alone)
    wanted = as_rows(alone.tensor)
    nearest: Distance | None = None
    for rows in places:
        found = trial.distance(case, [part], rows, wanted)
        if found.close:
            return Verdict(True, found.units)
        nearest = found if nearest is None or found.units < nearest.units else nearest
    assert nearest is not None
    return Verdict(
        False,
        nearest.units,
        expected=f"the rows that {part.label} gives alone, somewhere in the result",
        came=f"none nearer than {nearest.units:.3g} noise units",
        where=part.label,
        excess=float(nearest.excess.max()),
    )


@check("BA-01", given=company)
def ba_01_company_does_not_matter(trial: Trial, case: Case) -> Verdict:
    """An image gives the rows, wherever they stand, that it gives alone."""
    pictures, outcome = parts(case), trial.run(case)
    found = blocks(pictures, outcome)
    if found is None:
        return no_blocks(parts(case), outcome)
    verdicts = []
    for index, (part, image) in enumerate(zip(pictures, case.images, strict=True)):
        places = found[index:] + found[:index]  # its own place first
        verdicts.append(occurs(trial, case, part, places, trial.alone(case, image)))
    return worst(verdicts)


@check("BA-02", given=cases, images=(2, 3), patches=(0, 0), grouping=["split"])
def ba_02_permuted_items(trial: Trial, case: Case) -> Verdict:
    """Items in reverse give the rows of each item in reverse."""
    reverse = case.regrouped(case.groups[::-1])
    found = blocks(parts(case), trial.run(case))
    if found is None:
        return no_blocks(parts(case), trial.run(case))
    expected = Returned(torch.cat(found[::-1]))
    return trial.same(reverse, trial.run(reverse), expected)


def changed_image(image: Image) -> Image:
    """Another image of the same sizes: every pixel with the other sign, and a quarter more."""
    patches = None if image.patches is None else 0.25 - image.patches
    return Image(0.25 - image.thumbnail, patches)


@check("BA-03", given=cases, images=(2, 3), patches=(1, 2))
def ba_03_no_leak_between_images(trial: Trial, case: Case) -> Verdict:
    """Changing one image changes its own rows and no others."""
    images, pictures = case.images, parts(case)
    changed = case.regrouped([[changed_image(images[0]), *images[1:]]])
    outcome, other = trial.run(case), trial.run(changed)
    before, after = blocks(pictures, outcome), blocks(pictures, other)
    if before is None or after is None:
        return no_blocks(pictures, outcome if before is None else other)
    own = len(images[0].pictures)
    for part, one, two in zip(pictures[:own], before[:own], after[:own], strict=True):
        if trial.distance(case, [part], two, one).close:
            return wrong(f"other rows for {part.label}, which was changed", "the same rows")
    kept = Returned(torch.cat(before[own:]))
    return trial.same_parts(case, pictures[own:], Returned(torch.cat(after[own:])), kept)


@check("BA-04", given=company, images=(2, 3))
def ba_04_nan_stays_where_it_is(trial: Trial, case: Case) -> Verdict:
    """NaN or infinity in one image reaches some of its rows, and no row of the others."""
    return worst([spoilt(trial, case, profile) for profile in ("nan", "inf")])


def spoilt(trial: Trial, case: Case, profile: str) -> Verdict:
    """Spoil the first image and judge the rows of all."""
    images = case.images
    shape = tuple(images[0].thumbnail.shape)
    bad = paint(profile, 0, "spoilt", shape).to(case.dtype)  # type: ignore[arg-type]
    with_bad = case.regrouped([[Image(bad), *images[1:]]])
    pictures = parts(case)
    outcome = trial.run(with_bad)
    found = blocks(pictures, outcome)
    if found is None:
        return no_blocks(parts(case), outcome)
    if bool(found[0].isfinite().all()):
        return wrong(f"rows that are not finite for image 0, which holds {profile}", "finite rows")
    verdicts = []
    for part, rows, image in zip(pictures[1:], found[1:], images[1:], strict=True):
        alone = trial.alone(case, image)
        verdicts.append(trial.same_parts(case, [part], Returned(rows), alone))
    return worst(verdicts)


@check("BA-05", given=company)
def ba_05_bit_equal_in_company(trial: Trial, case: Case) -> Verdict:
    """An image gives bit for bit the rows that it gives alone."""
    outcome = trial.run(case)
    found = blocks(parts(case), outcome)
    if found is None:
        return no_blocks(parts(case), outcome)
    for part, rows, image in zip(parts(case), found, case.images, strict=True):
        alone = trial.alone(case, image)
        if not isinstance(alone, Returned):
            return failed(f"a result for {part.label} alone", alone)
        if not torch.equal(rows, as_rows(alone.tensor)):
            return wrong(f"bit-equal rows for {part.label}", "rows that differ in some bits")
    return PASSED
