"""The challenge: cases that a verifier's nonce determines.

They are drawn from the project's own stream of numbers, not by Hypothesis, so that a nonce means
the same cases on every machine and with every release: the vendor answers them, and the verifier
draws them anew. Their weights and pictures come from seeds of 63 bits, so that no store of earlier
answers can hold them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from conformance.dtypes import DTYPES
from conformance.protocol import Interface
from reference import EncoderConfig, ImageItem
from reference.stream import raw_bits
from strategies import Case, Image, Weights, paint, plain_item, square_grids
from strategies.configs import VARIANTS, tiny
from strategies.counts import Form, TensorForm

QUESTIONS = 8

NONCE_FORM = "16 to 64 letters, digits, dots, dashes and underscores"
_NONCE = re.compile(r"[0-9A-Za-z._-]{16,64}")
_REGIMES = ("balanced", "strong-positions", "tiny-variance")
_PROFILES = ("normal", "gradient", "checkerboard", "bright-cell")
_FORMS: tuple[Form, ...] = (list, tuple, TensorForm("flat"), TensorForm("row"))

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A case of a challenge.

    Attributes:
        case: well-formed.
        clauses: that a right answer needs; a waiver of one of them excuses a wrong one.
    """

    case: Case
    clauses: tuple[str, ...]


@dataclass(frozen=True)
class _Kind:
    """What sort of request a question is.

    Attributes:
        images: the least and the most.
        patches: of each image, the least and the most.
        together: whether all images are of one item.
        forms: among which to choose how counts are written, where the interface has forms.
        clauses: that it needs.
    """

    images: tuple[int, int]
    patches: tuple[int, int]
    together: bool
    forms: tuple[Form, ...]
    clauses: tuple[str, ...]


_KINDS = (
    _Kind((1, 1), (0, 0), True, (list,), ("EN-01",)),
    _Kind((2, 3), (0, 0), True, (list,), ("EN-01", "LA-03")),
    _Kind((1, 1), (1, 3), True, (list,), ("EN-01", "LA-02")),
    _Kind((2, 3), (1, 2), False, _FORMS, ("EN-01", "LA-02", "LA-03", "NP-04", "NP-05")),
)


def is_nonce(text: str) -> bool:
    """Whether a text can be a nonce: 16 to 64 letters, digits, dots, dashes and underscores."""
    return _NONCE.fullmatch(text) is not None


def challenge(nonce: str, family: str, dtype: str, interface: Interface) -> tuple[Question, ...]:
    """The questions for a family and dtype, in order.

    Args:
        nonce: drawn by the verifier.
        family: of the configurations.
        dtype: of the models, such as `float32`.
        interface: `batch` has one form of counts.
    """
    return tuple(
        _Draw(f"challenge/{nonce}/{family}/{dtype}/{number}").question(
            tiny(family, VARIANTS[(number + number // len(_KINDS)) % len(VARIANTS)]),
            DTYPES[dtype],
            _KINDS[number % len(_KINDS)],
            interface,
        )
        for number in range(QUESTIONS)
    )


class _Draw:
    """Choices under a label; each has a name, so that none depends on another."""

    def __init__(self, label: str) -> None:
        self.label = label

    def question(
        self, config: EncoderConfig, dtype: torch.dtype, kind: _Kind, interface: Interface
    ) -> Question:
        weights = Weights.drawn(config, self.seed("weights"), self.one_of("regime", _REGIMES))
        images = self.images(config, dtype, kind)
        form = self.one_of("form", kind.forms if interface == "items" else (list,))
        groups = [images] if kind.together else [images[:1], images[1:]]
        items = tuple(_written(plain_item(group), form) for group in groups)
        return Question(Case(config, weights, items, dtype), kind.clauses)

    def images(self, config: EncoderConfig, dtype: torch.dtype, kind: _Kind) -> list[Image]:
        grids = square_grids(config)
        sides = [self.one_of(name, grids)[0] * config.patch_size for name in ("thumbnail", "patch")]
        profile = self.one_of("profile", _PROFILES)

        def picture(name: str, side: int) -> torch.Tensor:
            return paint(profile, self.seed("pixels"), name, (3, side, side)).to(dtype)

        def image(number: int) -> Image:
            count = self.between(f"count {number}", *kind.patches)
            own = [picture(f"image {number} patch {patch}", sides[1]) for patch in range(count)]
            thumbnail = picture(f"image {number} thumbnail", sides[0])
            return Image(thumbnail, torch.stack(own) if own else None)

        return [image(number) for number in range(self.between("images", *kind.images))]

    def seed(self, name: str) -> int:
        return int(raw_bits(0, f"{self.label}/{name}", 1)[0] >> 1)

    def between(self, name: str, least: int, most: int) -> int:
        return least + self.seed(name) % (most - least + 1)

    def one_of(self, name: str, options: Sequence[T]) -> T:
        return options[self.seed(name) % len(options)]


def _written(item: ImageItem, form: Form) -> ImageItem:
    data = item.model_specific_data
    return ImageItem(item.feature, {**data, "num_patches": form(data["num_patches"])})
