"""EN: the encoder's arithmetic, one part at a time, against the float64 reference.

All send thumbnails alone: patches go through the same tower, and a fault of the patch path must
not hide the arithmetic. Each clause has weights under which its part decides the result and the
others are harmless (`reference.regimes`).
"""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

from conformance.check import check
from conformance.depth import isolated
from conformance.judge import PASSED, Verdict, failed, worst, wrong
from conformance.outcome import Returned, as_rows
from conformance.trial import LeftOut, Trial, parts
from reference import EncoderConfig, ReferenceEncoder
from strategies import Case, cases

PERCEPTION = ("step3-vl-10b", "step3p7")

ONE_LAYER = {"layers": 1}
_ODD_PATCH = {"layers": 1, "image_size": 25, "patch_size": 5, "projector_bias": True}
_STRIDE_1 = {"layers": 1, "downsampler_stride": 1}
HEAD_DIM_12 = {"layers": 1, "image_size": 12, "width": 24, "heads": 2, "mlp_width": 36}
_SQUARE_PROJECTOR = {
    "layers": 1,
    "width": 8,
    "downsampler_width": 16,
    "text_width": 32,
    "projector_bias": True,
}


def thumbnails(**options: Any) -> st.SearchStrategy[Case]:
    """Cases without patches."""
    return cases(**{"images": (1, 1), "patches": (0, 0), **options})


def single_cell(**options: Any) -> st.SearchStrategy[Case]:
    """Cases of the smallest picture: one cell, where no rotary turns, and four in `step3`."""
    side = 2 if options["family"] == "step3" else 1
    variant = {"layers": 1, "heads": 1, "image_size": 2 * side}
    return thumbnails(**options, variants=[variant], profiles=["constant"], grids=[(side, side)])


@check("EN-00", given=thumbnails, images=(2, 2))
def en_00_the_picture_matters(trial: Trial, case: Case) -> Verdict:
    """Two pictures give results that differ, and neither is zero."""
    one, other = case.images
    results = [trial.alone(case, image) for image in (one, other)]
    for outcome in results:
        if not isinstance(outcome, Returned):
            return failed("a result", outcome)
    rows = [
        as_rows(outcome.tensor).double() for outcome in results if isinstance(outcome, Returned)
    ]
    if rows[0].shape != rows[1].shape:
        return wrong("results of one shape for pictures of one size", results[1])
    if not all(bool(tensor.isfinite().all()) and bool(tensor.any()) for tensor in rows):
        return wrong("finite rows that are not all zero", "zeros, NaN or infinities")
    pictures = parts(case.regrouped([[one]]))
    if trial.distance(case, pictures, rows[1], rows[0]).close:
        return wrong("other rows for another picture", "the same rows for two pictures")
    return Verdict(True)


@check(
    "EN-01",
    given=thumbnails,
    effort=4,
    images=(1, 5),
    regimes=["balanced", "strong-positions", "tiny-variance"],
)
def en_01_the_whole_encoder(trial: Trial, case: Case) -> Verdict:
    """The whole result is that of the float64 reference."""
    return trial.right(case)


@check(
    "EN-02",
    given=thumbnails,
    regimes=["patch-embedding"],
    variants=[ONE_LAYER, _ODD_PATCH],
)
def en_02_patch_embedding(trial: Trial, case: Case) -> Verdict:
    """Patch embedding: stride, kernel, order of channels, bias as the family has it."""
    return isolated(trial, case)


@check(
    "EN-03",
    given=thumbnails,
    regimes=["positions"],
    variants=[{"layers": 1, "image_size": 14}],
    grids=[(5, 5), (6, 6), (4, 4), (3, 3)],
)
def en_03_positions_off_the_native_grid(trial: Trial, case: Case) -> Verdict:
    """The position table is resampled as the family does it."""
    return isolated(trial, case)


@check(
    "EN-03",
    given=thumbnails,
    regimes=["positions"],
    variants=[{"layers": 1, "image_size": 14}],
    grids=[(7, 7)],
)
def en_03_positions_on_the_native_grid(trial: Trial, case: Case) -> Verdict:
    """The position table is added as it is, cell by cell."""
    return isolated(trial, case)


@check(
    "EN-10",
    given=thumbnails,
    regimes=["equal-cells"],
    variants=[{**ONE_LAYER, "image_size": 12}, {**_STRIDE_1, "image_size": 12}],
    grids=[(5, 5), (6, 6)],
    profiles=["constant"],
)
def en_10_downsamplers_of_large_grids(trial: Trial, case: Case) -> Verdict:
    """The downsamplers' kernels, strides and padding; nothing between them."""
    return isolated(trial, case)


@check(
    "EN-10",
    given=thumbnails,
    regimes=["equal-cells"],
    variants=[{**ONE_LAYER, "image_size": 12}, {**_STRIDE_1, "image_size": 12}],
    grids=[(3, 3), (2, 2)],
    profiles=["constant"],
)
def en_10_downsamplers_of_small_grids(trial: Trial, case: Case) -> Verdict:
    """The downsamplers' kernels, strides and padding; nothing between them."""
    return isolated(trial, case)


@check(
    "EN-11",
    given=thumbnails,
    regimes=["projector"],
    variants=[{**ONE_LAYER, "projector_bias": True}],
)
def en_11_projector_with_bias(trial: Trial, case: Case) -> Verdict:
    """The projector and its bias."""
    return isolated(trial, case)


@check("EN-11", given=thumbnails, regimes=["projector"], variants=[_SQUARE_PROJECTOR])
def en_11_square_projector(trial: Trial, case: Case) -> Verdict:
    """A projector as wide as it is high, which could be transposed unnoticed."""
    return isolated(trial, case)


@check("EN-11", given=thumbnails, regimes=["projector"], variants=[ONE_LAYER])
def en_11_projector_without_bias(trial: Trial, case: Case) -> Verdict:
    """The projector without a bias."""
    return isolated(trial, case)


@check("EN-12", given=thumbnails, regimes=["large"])
def en_12_large_activations(trial: Trial, case: Case) -> Verdict:
    """A large residual stream, within a quarter of the dtype's maximum, gives a finite result."""
    return finite(trial, case)


@check("EN-12", given=thumbnails, regimes=["large-branches"])
def en_12_large_branches(trial: Trial, case: Case) -> Verdict:
    """Large scores and hidden values, within a quarter of the maximum, give a finite result."""
    return finite(trial, case)


def finite(trial: Trial, case: Case) -> Verdict:
    """Judge whether a result is finite; only cases that stay within the range say anything."""
    if largest_stage(case) > torch.finfo(case.dtype).max / 4:
        raise LeftOut
    outcome = trial.run(case)
    if not isinstance(outcome, Returned):
        return failed("a result", outcome)
    numbers = outcome.tensor.isfinite()
    if bool(numbers.all()):
        return PASSED
    return wrong("a finite result", f"{int((~numbers).sum())} values that are not finite")


def largest_stage(case: Case) -> float:
    """The largest absolute value of any stage of the float64 reference."""
    found = [0.0]

    def probe(stage: str, value: torch.Tensor) -> None:  # noqa: ARG001
        found.append(float(value.abs().max()))

    encoder = ReferenceEncoder(case.config, case.weights, dtype=torch.float64)
    for item in case.items:
        encoder.encode(item.feature, probe)
    return max(found)


@check("EN-13", given=single_cell, regimes=["tiny-norms"])
def en_13_another_epsilon(trial: Trial, case: Case) -> Verdict:
    """An epsilon in the configuration other than the settled one is followed, or passed over."""
    other = case.config.replace(norm_eps=case.config.norm_eps * 16)
    return whom_it_follows(trial, case, other, "epsilon")


@check(
    "EN-13",
    given=thumbnails,
    families=PERCEPTION,
    regimes=["rotary"],
    variants=[HEAD_DIM_12],
    grids=[(6, 6), (5, 5)],
)
def en_13_another_rotary_base(trial: Trial, case: Case) -> Verdict:
    """A rotary base in the configuration other than the settled one is followed, or passed over."""
    other = case.config.replace(rotary_base=case.config.rotary_base / 16)
    return whom_it_follows(trial, case, other, "rotary base")


def whom_it_follows(trial: Trial, case: Case, other: EncoderConfig, what: str) -> Verdict:
    """Pass if the implementation follows the configuration or the settled value; note which."""
    configured = case.replace(config=other)
    outcome = trial.run(configured)
    if trial.right(configured, outcome).passed:
        return Verdict(True, note=f"{what}: follows the configuration")
    verdict = trial.right(case, outcome)
    return worst([verdict, Verdict(True, note=f"{what}: follows the settled value")])
