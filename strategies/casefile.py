"""A case as one safetensors file, which any tool that reads safetensors can open.

Many cases of one encoder can share their weights, which are most of their bytes: a file of their
own then holds them, named by their digest.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from reference import EncoderConfig, ImageItem
from strategies.case import Case, Placement, Weights, combined
from strategies.encoding import Encoded, decode

FORMAT = "step3vl-case-1"
WEIGHTS_FORMAT = "step3vl-weights-1"

_WEIGHTS, _ITEMS = "weights/", "items/"


def save_case(
    case: Case,
    file: str | Path,
    notes: Mapping[str, Any] | None = None,
    *,
    weights: Path | None = None,
) -> None:
    """Write a case to one file.

    Args:
        case: what to write.
        file: where to; its folder must exist.
        notes: JSON values to keep with it, such as the check that it fails.
        weights: the folder of a file for the weights, made if they have none yet; it must exist,
            and both files must keep their place to each other. None keeps them in the case's own.
    """
    stored = {_ITEMS + key: tensor for key, tensor in case.encoded.tensors.items()}
    tensors = {_WEIGHTS + name: tensor for name, tensor in case.weights.items()}
    if weights is None:
        stored |= tensors
    metadata = {
        "format": FORMAT,
        "case": case.encoded.header,
        "weights": case.weights.label,
        "notes": json.dumps(dict(notes or {}), sort_keys=True),
    }
    if weights is not None:
        apart = weights / f"{case.weights.digest}.safetensors"
        metadata["weights_file"] = Path(os.path.relpath(apart, Path(file).parent)).as_posix()
        if not apart.exists():
            _write(tensors, apart, {"format": WEIGHTS_FORMAT})
    _write(stored, Path(file), metadata)


def _write(tensors: Mapping[str, Tensor], file: Path, metadata: Mapping[str, str]) -> None:
    """Write a file at once: another process sees all of it or none."""
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        whole = Path(folder) / file.name
        own = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
        whole.write_bytes(_ordered(save(own, dict(metadata))))
        whole.replace(file)


def _ordered(content: bytes) -> bytes:
    """The same file with a sorted header: safetensors writes metadata in a random order."""
    size = int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, ensure_ascii=False)
    # Padded as safetensors pads it, so that the tensors stay aligned.
    text = header.encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


def load_case(file: str | Path) -> tuple[Case, dict[str, Any]]:
    """Read a case and its notes.

    Raises:
        ValueError: the file is missing or is not a saved case.
    """
    metadata, tensors = _open(file)
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{file} is not a case of format {FORMAT}")
    if "weights_file" in metadata:
        apart = Path(file).parent / metadata["weights_file"]
        tensors |= _open(apart)[1]
        if Weights(_under(_WEIGHTS, tensors)).digest != apart.stem:
            raise ValueError(f"{apart} does not hold the weights that it is named for")
    try:
        return _read(metadata, tensors), dict(json.loads(metadata["notes"]))
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{file} is a damaged case: {error!r}") from None


def digest_of(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """The digest of the case in an opened file, which is not decoded.

    Args:
        metadata: of the file.
        tensors: of the file, by name.

    Raises:
        ValueError: it is not a saved case.
    """
    if metadata.get("format") != FORMAT or "case" not in metadata:
        raise ValueError(f"it is not a case of format {FORMAT}")
    encoded = Encoded(metadata["case"], _under(_ITEMS, tensors))
    return combined(encoded, Weights(_under(_WEIGHTS, tensors)))


def _open(file: str | Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safe_open(file, framework="pt") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return opened.metadata() or {}, tensors
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{file} is not a readable case: {error}") from None


def _read(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> Case:
    value = decode(Encoded(metadata["case"], _under(_ITEMS, tensors)))
    return Case(
        config=EncoderConfig(**value["config"]),
        weights=Weights(_under(_WEIGHTS, tensors), metadata["weights"]),
        items=tuple(ImageItem(**item) for item in value["items"]),
        dtype=_dtype(value["dtype"]),
        placement=Placement(**value["placement"]),
    )


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"torch.{name} is no dtype")
    return found


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        # A copy: kernels may round otherwise on tensors of a mapped file, which lie unaligned.
        name.removeprefix(prefix): tensor.clone()
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
