"""The answers of an implementation to a challenge, in one safetensors file a family and dtype."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor

from conformance.challenge import Question
from conformance.document import DocumentError, read_json
from conformance.driver import Driver
from conformance.isolation.remote import RemoteDriver
from conformance.outcome import Outcome, Returned
from conformance.tensorfile import read_tensors

FORMAT = "step3vl-answers-1"

_FIELDS = {"format", "challenge", "family", "dtype", "answers"}


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of one question.

    Attributes:
        case: the digest of its case.
        tensor: that was returned, None if none was.
        came: instead of a tensor, in words.
    """

    case: str
    tensor: Tensor | None
    came: str = ""


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to the challenge of a nonce for a family and dtype, in order."""

    challenge: str
    family: str
    dtype: str
    answers: tuple[Answer, ...]

    @property
    def name(self) -> str:
        """Of the file."""
        return file_name(self.family, self.dtype)


def file_name(family: str, dtype: str) -> str:
    """Of the answers for a family and dtype."""
    return f"{family}-{dtype}.safetensors"


def answer(driver: Driver | RemoteDriver, questions: Sequence[Question]) -> tuple[Answer, ...]:
    """Put questions to an implementation."""
    return tuple(_answer(question.case.digest, driver.run(question.case)) for question in questions)


def _answer(digest: str, outcome: Outcome) -> Answer:
    if not isinstance(outcome, Returned):
        return Answer(digest, None, str(outcome))
    tensor = outcome.tensor.contiguous().clone()
    try:
        save({"answer": tensor})
    except (SafetensorError, KeyError, ValueError) as error:
        return Answer(digest, None, f"{outcome} that cannot be saved: {error}")
    return Answer(digest, tensor)


def write_answers(found: Answers, folder: Path) -> None:
    """Write answers to the file of their family and dtype; the same answers give the same bytes.

    Raises:
        OSError: it cannot be written.
    """
    said = {
        "format": FORMAT,
        "challenge": found.challenge,
        "family": found.family,
        "dtype": found.dtype,
        "answers": [{"case": one.case, "came": one.came} for one in found.answers],
    }
    tensors = {
        _key(place): one.tensor for place, one in enumerate(found.answers) if one.tensor is not None
    }
    # One entry, since safetensors writes several in a random order.
    (folder / found.name).write_bytes(save(tensors, {"said": json.dumps(said, sort_keys=True)}))


def read_answers(data: bytes) -> Answers:
    """Read answers that a stranger wrote.

    Raises:
        DocumentError: they are none; the message says why.
    """
    found = read_tensors(data)
    if set(found.metadata) != {"said"}:
        raise DocumentError("its metadata are not those of answers")
    said = read_json(found.metadata["said"].encode())
    if not isinstance(said, dict) or set(said) != _FIELDS or said["format"] != FORMAT:
        raise DocumentError(f"it holds no answers of format {FORMAT}")
    entries = said["answers"]
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise DocumentError("its list of answers is damaged")
    expected = {_key(place) for place, entry in enumerate(entries) if not entry["came"]}
    if expected != set(found.tensors):
        raise DocumentError("its tensors are not those that it says were returned")
    answers = [
        Answer(entry["case"], found.tensors.get(_key(place)), entry["came"])
        for place, entry in enumerate(entries)
    ]
    return Answers(said["challenge"], said["family"], said["dtype"], tuple(answers))


def _key(place: int) -> str:
    return f"answer.{place}"


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == {"case", "came"}
        and all(isinstance(value, str) for value in entry.values())
    )
