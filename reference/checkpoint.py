"""Real checkpoints: a Hugging Face directory, of which only the vision tensors are read."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from reference.config import EncoderConfig
from reference.errors import CheckpointError
from reference.weights import VISION_PREFIXES, require_weights

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"

# Some published checkpoints put this before every name (WE-03).
_OUTER_PREFIX = "model."


def load_checkpoint(directory: str | Path) -> tuple[EncoderConfig, dict[str, Tensor]]:
    """Read the configuration and the vision tensors of a checkpoint.

    Args:
        directory: holds `config.json`, and either `model.safetensors` or
            `model.safetensors.index.json` with its shards.

    Returns:
        The configuration, and the tensors under their published names as they are stored.

    Raises:
        CheckpointError: a file is missing or unreadable; the message names it.
        WeightsError: a vision tensor is missing, unknown or of the wrong shape.
    """
    directory = Path(directory)
    config = EncoderConfig.from_hf(_read_json(directory / "config.json"))
    weights: dict[str, Tensor] = {}
    for file, stored_names in _files(directory).items():
        found = _read_tensors(file, stored_names)
        if twice := sorted(found.keys() & weights.keys()):
            raise CheckpointError(f"{file} holds {twice[0]!r}, which another file holds too")
        weights |= found
    require_weights(config, weights)
    return config, weights


def _files(directory: Path) -> dict[Path, list[str] | None]:
    """Each file to open, with the stored names to read from it (None: look inside)."""
    if (directory / _INDEX).exists():
        files: dict[Path, list[str] | None] = defaultdict(list)
        index = _read_json(directory / _INDEX)
        if not isinstance(index.get("weight_map"), dict):
            raise CheckpointError(f"{directory / _INDEX} has no weight_map")
        for stored, shard in index["weight_map"].items():
            if not isinstance(shard, str) or Path(shard).name != shard or shard in ("", ".", ".."):
                raise CheckpointError(f"{directory / _INDEX} names {shard!r}, not a file beside it")
            if _published(stored):
                names = files[directory / shard]
                assert names is not None
                names.append(stored)
        return files
    if (directory / _SINGLE).exists():
        return {directory / _SINGLE: None}
    raise CheckpointError(f"{directory} has neither {_SINGLE} nor {_INDEX}")


def _published(stored: str) -> str | None:
    """The published name of a vision tensor, None for any other tensor."""
    name = stored.removeprefix(_OUTER_PREFIX)
    return name if name.startswith(VISION_PREFIXES) else None


def _read_tensors(file: Path, stored_names: list[str] | None) -> dict[str, Tensor]:
    if not file.is_file():
        raise CheckpointError(f"{file} is missing; the index names it")
    try:
        with safe_open(file, framework="pt") as tensors:
            present = set(tensors.keys())
            wanted = sorted(present) if stored_names is None else stored_names
            if absent := sorted(set(wanted) - present):
                raise CheckpointError(f"{file} lacks {absent[0]!r}; the index says it is there")
            named = {name: stored for stored in wanted if (name := _published(stored))}
            if len(named) < sum(_published(stored) is not None for stored in wanted):
                raise CheckpointError(
                    f"{file} holds a vision tensor with and without {_OUTER_PREFIX!r}"
                )
            # Copies: kernels may round otherwise on tensors of a mapped file, which lie unaligned.
            return {name: tensors.get_tensor(stored).clone() for name, stored in named.items()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file} is not a readable safetensors file: {error}") from None


def _read_json(file: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{file} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CheckpointError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise CheckpointError(f"{file} holds a {type(parsed).__name__}, not an object")
    return parsed
