"""Damaged case files: each is refused with a ValueError that names the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from reference import EncoderConfig, ImageItem
from strategies import Case, Weights, load_case, save_case

CONFIG = EncoderConfig.tiny("step3")


@dataclass
class Stored:
    """What a file holds."""

    metadata: dict[str, str]
    tensors: dict[str, Tensor]


Damage = Callable[[Stored], object]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A sound case file."""
    item = ImageItem(torch.ones(1, 3, 8, 8), {"num_patches": torch.tensor([0]), "extra": [1.5]})
    found = tmp_path / "case.safetensors"
    save_case(Case(CONFIG, Weights.drawn(CONFIG, 0), (item,)), found, {"check": "en_01"})
    return found


def damaged(file: Path, damage: Damage) -> None:
    """Rewrite a file with its metadata and tensors changed."""
    with safe_open(file, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
        stored = Stored(dict(opened.metadata()), tensors)
    damage(stored)
    save_file(stored.tensors, file, metadata=stored.metadata)


def refusal(file: Path) -> str:
    """The message with which a file is refused."""
    with pytest.raises(ValueError, match="case") as caught:
        load_case(file)
    return str(caught.value)


def test_the_sound_file_loads(file: Path) -> None:
    """The file that is damaged below is sound, also when rewritten without damage."""
    damaged(file, lambda _: None)
    case, notes = load_case(file)
    assert case.config == CONFIG
    assert notes == {"check": "en_01"}


def test_a_missing_file(tmp_path: Path) -> None:
    """A file that there is not is named."""
    assert "nowhere.safetensors is not a readable case" in refusal(tmp_path / "nowhere.safetensors")


@pytest.mark.parametrize("content", [b"", b"{}", b"not safetensors at all" * 9])
def test_another_kind_of_file(file: Path, content: bytes) -> None:
    """A file that is not safetensors is named."""
    file.write_bytes(content)
    assert f"{file} is not a readable case" in refusal(file)


@pytest.mark.parametrize("kept", [4, 100, 0.5, -1])
def test_a_cut_file(file: Path, kept: float) -> None:
    """A file of which the end is missing is named."""
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept) if isinstance(kept, float) else kept])
    assert str(file) in refusal(file)


def test_safetensors_of_something_else(file: Path) -> None:
    """A safetensors file without the format's name is named, and so is the format."""
    save_file({"a": torch.ones(1)}, file)
    assert f"{file} is not a case of format step3vl-case-1" in refusal(file)


def test_another_version_of_the_format(file: Path) -> None:
    """A file of another version of the format is refused."""
    damaged(file, lambda stored: stored.metadata.update(format="step3vl-case-2"))
    assert f"{file} is not a case of format step3vl-case-1" in refusal(file)


def on_header(change: Callable[[str], str]) -> Damage:
    """Damage to the JSON of the case."""
    return lambda stored: stored.metadata.update(case=change(stored.metadata["case"]))


def swapped(old: str, new: str) -> Damage:
    """The first place of a text in the case's JSON replaced by another."""

    def change(header: str) -> str:
        assert old in header
        return header.replace(old, new, 1)

    return on_header(change)


DAMAGES: dict[str, Damage] = {
    "no case": lambda stored: stored.metadata.pop("case"),
    "no notes": lambda stored: stored.metadata.pop("notes"),
    "no label": lambda stored: stored.metadata.pop("weights"),
    "a tensor is lost": lambda stored: stored.tensors.pop("items/tensor.0"),
    "a field is lost": swapped('"width"', '"breadth"'),
    "a field of an item is lost": swapped('"feature"', '"future"'),
    "a field of a tensor is lost": swapped('"stride"', '"strive"'),
    "an unknown dtype": swapped('"float32"', '"float33"'),
}
# Content that makes no sense.
UNNAMED: dict[str, Damage] = {
    "the JSON is cut": on_header(lambda header: header[:-9]),
    "the JSON is a list": on_header(lambda header: json.dumps([header])),
    "the notes are no JSON": lambda stored: stored.metadata.update(notes="{"),
    "an unknown family": swapped('"step3"', '"step4"'),
    "a value of the configuration is wrong": swapped('["heads", 2]', '["heads", 3]'),
    "an unknown kind of value": swapped('{"float": "1.5"}', '{"fraction": "3/2"}'),
    "a number that is none": swapped('{"float": "1.5"}', '{"float": "one and a half"}'),
    "a tensor is larger than its storage": swapped('"size": [1, 3, 8, 8]', '"size": [9, 3, 8, 8]'),
    "a negative offset": swapped('"offset": 0', '"offset": -1'),
    "the dtype is a module": swapped('"float32"', '"nn"'),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file(file: Path, damage: Damage) -> None:
    """A file in which something is lost or unknown is named as damaged."""
    damaged(file, damage)
    assert f"{file} is a damaged case" in refusal(file)


@pytest.mark.parametrize("damage", UNNAMED.values(), ids=UNNAMED)
def test_a_file_damaged_in_another_way(file: Path, damage: Damage) -> None:
    """A file whose content makes no sense is named as damaged."""
    damaged(file, damage)
    assert f"{file} is a damaged case" in refusal(file)
