"""Safetensors from strangers: bounded before they are read, and never a pickle."""

from __future__ import annotations

from dataclasses import dataclass

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from conformance.document import DocumentError, read_json

_LONGEST_HEADER = 1 << 18
_LENGTH = 8


@dataclass(frozen=True)
class TensorFile:
    """The content of a safetensors file.

    Attributes:
        metadata: its texts by name.
        tensors: its tensors by name, on the CPU.
    """

    metadata: dict[str, str]
    tensors: dict[str, Tensor]


def read_tensors(data: bytes) -> TensorFile:
    """Read a safetensors file.

    Args:
        data: all of it.

    Raises:
        DocumentError: it is none; the message says why.
    """
    header = read_json(_header(data))
    metadata = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise DocumentError("its header is not that of a safetensors file")
    try:
        return TensorFile(metadata, load(data))
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise DocumentError(f"it is not a safetensors file: {error}") from None


def _header(data: bytes) -> bytes:
    length = int.from_bytes(data[:_LENGTH], "little")
    if length > min(_LONGEST_HEADER, len(data) - _LENGTH):
        raise DocumentError(f"its header is said to have {length} bytes")
    return data[_LENGTH : _LENGTH + length]
