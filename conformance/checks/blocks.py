"""EN-04 to EN-09: the blocks and the class token, one part at a time, against the reference."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from conformance.check import check
from conformance.checks.arithmetic import (
    HEAD_DIM_12,
    ONE_LAYER,
    PERCEPTION,
    single_cell,
    thumbnails,
)
from conformance.depth import isolated
from conformance.judge import Verdict
from conformance.trial import Trial
from strategies import Case

_HEAD_DIM_16 = {"layers": 1, "image_size": 12, "width": 64, "heads": 4, "mlp_width": 96}
_HEAD_DIM_96 = {"layers": 1, "width": 192, "heads": 2, "mlp_width": 96}
_GELU = {"layers": 1, "hidden_act": "gelu"}
_CLASS_TOKEN = {"layers": 1, "class_token": True}
_CLASS_TOKEN_OFF_GRID = {"layers": 1, "class_token": True, "image_size": 10}


def four_cells(**options: Any) -> st.SearchStrategy[Case]:
    """Cases of four equal cells."""
    variant = {"layers": 1, "heads": 1}
    return thumbnails(**options, variants=[variant], profiles=["constant"], grids=[(2, 2)])


@check(
    "EN-04",
    given=thumbnails,
    regimes=["class-drop"],
    variants=[_CLASS_TOKEN, _CLASS_TOKEN_OFF_GRID],
    profiles=["constant"],
)
def en_04_class_tokens_are_dropped(trial: Trial, case: Case) -> Verdict:
    """Class tokens, and nothing else, are dropped."""
    return with_class_token(trial, case)


@check(
    "EN-04",
    given=thumbnails,
    after=["EN-02", "EN-08"],
    regimes=["class-copies"],
    variants=[_CLASS_TOKEN, _CLASS_TOKEN_OFF_GRID],
    profiles=["black"],
)
def en_04_class_tokens_take_part(trial: Trial, case: Case) -> Verdict:
    """As many class tokens as the family has take part in attention."""
    return with_class_token(trial, case)


@check(
    "EN-04",
    given=thumbnails,
    after=["EN-07"],
    families=PERCEPTION,
    regimes=["class-rotary"],
    variants=[{**HEAD_DIM_12, "class_token": True}],
    grids=[(6, 6), (5, 5)],
)
def en_04_class_tokens_do_not_turn(trial: Trial, case: Case) -> Verdict:
    """A class token has rotary angle 0, and cells count from (1, 1)."""
    return with_class_token(trial, case)


@check(
    "EN-04",
    given=thumbnails,
    after=["EN-02", "EN-03", "EN-08"],
    regimes=["class-position"],
    variants=[_CLASS_TOKEN, _CLASS_TOKEN_OFF_GRID],
    profiles=["black"],
)
def en_04_class_tokens_have_a_position(trial: Trial, case: Case) -> Verdict:
    """The first row of the position table is added to the class token."""
    return with_class_token(trial, case)


def with_class_token(trial: Trial, case: Case) -> Verdict:
    """As `isolated`; only `step3` is published with class tokens, others may refuse them."""
    if case.config.family != "step3":
        trial.require_offered(case)
    return isolated(trial, case)


@check("EN-05", given=four_cells, regimes=["norms"])
def en_05_norms(trial: Trial, case: Case) -> Verdict:
    """Norms stand where the family has them, with their weights and biases."""
    return isolated(trial, case)


@check(
    "EN-05",
    given=thumbnails,
    after=["EN-04"],
    regimes=["norms-apart"],
    variants=[ONE_LAYER],
    grids=[(2, 2), (3, 3)],
    profiles=["first-pixel"],
)
def en_05_each_token_by_itself(trial: Trial, case: Case) -> Verdict:
    """Norms take their statistics over the channels of one token."""
    return isolated(trial, case)


@check(
    "EN-05",
    given=single_cell,
    after=["EN-08"],
    families=PERCEPTION,
    regimes=["both-branches", "tiny-branches"],
)
def en_05_norm_before_attention(trial: Trial, case: Case) -> Verdict:
    """The norm before attention, and the block as a whole."""
    return isolated(trial, case)


@check("EN-05", given=four_cells, regimes=["tiny-norms"])
def en_05_epsilon(trial: Trial, case: Case) -> Verdict:
    """The norms' epsilon is the settled one."""
    return isolated(trial, case)


@check("EN-06", given=single_cell, regimes=["layer-scale"])
def en_06_layer_scale(trial: Trial, case: Case) -> Verdict:
    """Attention and MLP are each scaled by their own gammas."""
    return isolated(trial, case)


@check(
    "EN-07",
    given=thumbnails,
    regimes=["rotary"],
    variants=[HEAD_DIM_12, _HEAD_DIM_16, {**HEAD_DIM_12, "heads": 3}],
    grids=[(6, 6)],
)
def en_07_rotary(trial: Trial, case: Case) -> Verdict:
    """Queries and keys turn with column and row, in interleaved pairs."""
    return isolated(trial, case)


@check(
    "EN-07",
    given=thumbnails,
    regimes=["rotary"],
    variants=[HEAD_DIM_12, _HEAD_DIM_16],
    grids=[(5, 5), (4, 4)],
)
def en_07_rotary_off_the_native_grid(trial: Trial, case: Case) -> Verdict:
    """Positions are those of the grid that is there."""
    return isolated(trial, case)


@check(
    "EN-07",
    given=thumbnails,
    regimes=["rotary-values"],
    variants=[HEAD_DIM_12],
    grids=[(6, 6), (5, 5)],
    profiles=["constant"],
)
def en_07_values_do_not_turn(trial: Trial, case: Case) -> Verdict:
    """Values never rotate."""
    return isolated(trial, case)


@check(
    "EN-08",
    given=thumbnails,
    regimes=["attention"],
    variants=[_HEAD_DIM_96, {**HEAD_DIM_12, "image_size": 8}],
    grids=[(3, 3)],
    profiles=["first-cell"],
)
def en_08_attention(trial: Trial, case: Case) -> Verdict:
    """Attention: its scale, its heads, head dims that are not powers of two."""
    return isolated(trial, case)


@check(
    "EN-08",
    given=thumbnails,
    families=("step3",),
    regimes=["rotary"],
    variants=[HEAD_DIM_12, _HEAD_DIM_16],
)
def en_08_queries_and_keys(trial: Trial, case: Case) -> Verdict:
    """Each token asks with its query and is found by its key, where no rotary tells them apart."""
    return isolated(trial, case)


@check("EN-09", given=thumbnails, regimes=["activation"], variants=[ONE_LAYER])
def en_09_quick_gelu(trial: Trial, case: Case) -> Verdict:
    """The activation `quick_gelu` is x*sigmoid(1.702x)."""
    return isolated(trial, case)


@check("EN-09", given=thumbnails, regimes=["activation"], variants=[_GELU])
def en_09_gelu(trial: Trial, case: Case) -> Verdict:
    """The activation `gelu` is the exact one."""
    return isolated(trial, case)
