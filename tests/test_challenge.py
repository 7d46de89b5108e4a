"""The challenge: cases that follow from a nonce, and answers that cannot be kept in store."""

from __future__ import annotations

import itertools
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from conformance import package
from conformance.answers import Answer, Answers, answer, read_answers, write_answers
from conformance.challenge import QUESTIONS, challenge, is_nonce
from conformance.document import DocumentError
from conformance.driver import Driver
from conformance.dtypes import DTYPES
from conformance.verification import verify
from reference import FAMILIES, ReferenceEncoder
from tests.golden import CPU, DTYPE, FAMILY, NONCE, WITNESS, write
from tests.miniatures import Miniature

OTHER = "a-nonce-drawn-after-the-first-run"


def test_a_nonce_means_the_same_cases_everywhere() -> None:
    """On any machine, with any release of Hypothesis: the digests are of another run."""
    found = challenge("0123456789abcdef", "step3", "bfloat16", "items")
    assert [question.case.digest for question in found[::7]] == DIGESTS


DIGESTS = ["e47dd9e51ca7766321b758ac4cdffc97", "12d55c2c91f162ca6822ee69acf87da4"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_challenge_covers_what_arrives(family: str, dtype: str) -> None:
    """Well-formed requests: with patches, with several images, with several items."""
    cases = [question.case for question in challenge(NONCE, family, dtype, "items")]
    assert len({case.digest for case in cases}) == QUESTIONS
    assert len({case.config for case in cases}) == 4
    assert any(image.count for case in cases for image in case.images)
    assert any(len(case.images) > 1 for case in cases)
    assert any(len(case.items) > 1 for case in cases)
    assert {case.dtype for case in cases} == {DTYPES[dtype]}


def test_another_nonce_means_other_cases() -> None:
    """So does another family, dtype or, where forms of counts are concerned, interface."""
    variations = itertools.product((NONCE, OTHER), FAMILIES, DTYPES)
    digests = [q.case.digest for v in variations for q in challenge(*v, "items")]
    assert len(set(digests)) == len(digests)


def test_one_form_of_counts_for_the_batch_interface() -> None:
    """Its implementations may not know others."""
    cases = [q.case for q in challenge(NONCE, FAMILY, DTYPE, "batch")]
    counts = [item.model_specific_data["num_patches"] for case in cases for item in case.items]
    assert {type(found) for found in counts} == {list}


@pytest.mark.parametrize("text", ["", "short", "x" * 65, "a/path/of/sixteen", "sixteen-letters!\n"])
def test_what_is_no_nonce(text: str) -> None:
    """Too short to be guessed at, or of letters that a file name cannot have."""
    assert not is_nonce(text)


class Storing(ReferenceEncoder):
    """The reference, whose results are kept; and once it has some, nothing but those."""

    store: list[torch.Tensor]
    replaying = False

    def get_image_feature(self, items):  # noqa: D102
        if not self.replaying:
            self.store.append(super().get_image_feature(items))
            return self.store[-1]
        self.store.append(self.store.pop(0))
        return self.store[-1]


def test_stored_answers_are_caught_by_a_new_nonce(tmp_path: Path) -> None:
    """They are right for the nonce that they were made for, and for no other."""
    encoder = type("Storing", (Storing,), {"store": []})
    subject = Miniature("storing", encoder, (FAMILY,))
    write(tmp_path / "first" / "package", subject)
    encoder.replaying = True
    write(tmp_path / "again" / "package", subject)
    with patch("tests.golden.NONCE", OTHER):
        write(tmp_path / "other" / "package", subject)
    assert verify(tmp_path / "first" / "package", challenge=NONCE).accepted
    assert verify(tmp_path / "again" / "package", challenge=NONCE).accepted
    found = verify(tmp_path / "other" / "package", challenge=OTHER)
    assert {breach.rule for breach in found.breaches} <= {"CH-03", "CH-04"}
    assert len(found.breaches) == QUESTIONS
    assert found.breaches[0].file == WITNESS


def test_the_same_answers_give_the_same_bytes(tmp_path: Path) -> None:
    """Asked twice, of two encoders."""
    written = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        driver = Driver(Miniature("right", ReferenceEncoder), CPU)
        found = answer(driver, challenge(NONCE, "step3", "float16", "items"))
        write_answers(Answers(NONCE, "step3", "float16", found), folder)
        written.append((folder / "step3-float16.safetensors").read_bytes())
    assert written[0] == written[1]


def test_answers_are_read_back(tmp_path: Path) -> None:
    """Tensors bit by bit, and in words what came instead."""
    tensor = torch.tensor([[1.0, float("nan")]], dtype=torch.bfloat16)
    given = (Answer("a", tensor), Answer("b", None, "ValueError: no"), Answer("c", tensor * 2))
    write_answers(Answers(NONCE, FAMILY, DTYPE, given), tmp_path)
    found = read_answers((tmp_path / f"{FAMILY}-{DTYPE}.safetensors").read_bytes())
    assert [(one.case, one.came) for one in found.answers] == [
        (one.case, one.came) for one in given
    ]
    bits = [one.tensor.view(torch.int16) for one in found.answers if one.tensor is not None]
    assert torch.equal(bits[0], tensor.view(torch.int16))
    assert len(bits) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"12345678",
        b"\x02" + b"\0" * 7 + b"{}",
        b"\x80\x04\x95.",
        b"\x04" + b"\0" * 7 + b"null",
    ],
)
def test_what_are_no_answers_is_said(data: bytes) -> None:
    """Nothing at all, an empty file of tensors, a pickle."""
    with pytest.raises(DocumentError):
        read_answers(data)


def test_a_report_stays_small(tmp_path: Path) -> None:
    """All families and dtypes, in less than a megabyte."""
    subject = Miniature("right", ReferenceEncoder)
    with patch("conformance.package.challenge", lambda *_: ()):
        write(tmp_path / "package", subject, dtypes=tuple(DTYPES), fails=True)
    assert (tmp_path / "package" / package.REPORT).stat().st_size < 1_000_000
