"""A case as one safetensors file, which any tool that reads safetensors can open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from reference import EncoderConfig, ImageItem
from strategies.case import Case, Placement, Weights, combined
from strategies.encoding import Encoded, decode

FORMAT = "step3vl-case-1"

_WEIGHTS, _ITEMS = "weights/", "items/"


def save_case(case: Case, file: str | Path, notes: Mapping[str, Any] | None = None) -> None:
    """Write a case to one file.

    Args:
        case: what to write.
        file: where to; its folder must exist.
        notes: JSON values to keep with it, such as the check that it fails.
    """
    stored = {_WEIGHTS + name: tensor.contiguous() for name, tensor in case.weights.items()}
    stored |= {_ITEMS + key: tensor for key, tensor in case.encoded.tensors.items()}
    metadata = {
        "format": FORMAT,
        "case": case.encoded.header,
        "weights": case.weights.label,
        "notes": json.dumps(dict(notes or {}), sort_keys=True),
    }
    save_file({name: tensor.clone() for name, tensor in stored.items()}, file, metadata=metadata)


def load_case(file: str | Path) -> tuple[Case, dict[str, Any]]:
    """Read a case and its notes.

    Raises:
        ValueError: the file is missing or is not a saved case.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{file} is not a readable case: {error}") from None
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{file} is not a case of format {FORMAT}")
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
