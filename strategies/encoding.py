"""Values as JSON and tensors: what a case is hashed by and saved as.

Everything that can stand in an item survives: Python numbers, NaN, NumPy scalars and arrays,
tensors with their strides and storage, tensors that require grad or come from inference mode.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Encoded:
    """A value as JSON text and the flat storage of its tensors."""

    header: str
    tensors: dict[str, Tensor]

    def digest(self) -> str:
        """A hash of the content."""
        hashed = hashlib.blake2b(self.header.encode(), digest_size=16)
        for key in sorted(self.tensors):
            hashed.update(self.tensors[key].contiguous().view(torch.uint8).numpy().tobytes())
        return hashed.hexdigest()


def encode(value: Any) -> Encoded:
    """Turn a value into JSON and tensors.

    Raises:
        TypeError: it holds something that has no encoding.
    """
    tensors: dict[str, Tensor] = {}
    header = json.dumps(_to_json(value, tensors), sort_keys=True, allow_nan=False)
    return Encoded(header, tensors)


def decode(encoded: Encoded) -> Any:
    """Turn JSON and tensors back into the value.

    Raises:
        ValueError: the header is not of this encoding.
    """
    return _from_json(json.loads(encoded.header), encoded.tensors)


def _to_json(value: Any, tensors: dict[str, Tensor]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        return {"numpy": value.dtype.name, "value": _to_json(value.item(), tensors)}
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, Tensor):
        return _tensor_to_json(value, tensors)
    if isinstance(value, np.ndarray):
        return {"array": _tensor_to_json(torch.from_numpy(value), tensors)}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_to_json(entry, tensors) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _to_json(entry, tensors)] for key, entry in value.items()]}
    raise TypeError(f"a case cannot hold {value!r} ({type(value).__name__})")


def _tensor_to_json(value: Tensor, tensors: dict[str, Tensor]) -> dict[str, Any]:
    key = f"tensor.{len(tensors)}"
    tensors[key] = _storage(value)
    return {
        "tensor": key,
        "dtype": str(value.dtype).removeprefix("torch."),
        "size": list(value.shape),
        "stride": list(value.stride()),
        "offset": value.storage_offset(),
        "requires_grad": value.requires_grad,
        "inference": value.is_inference(),
    }


def _storage(value: Tensor) -> Tensor:
    """All elements of the storage that a tensor looks at, flat."""
    value = value.detach().cpu()
    elements = value.untyped_storage().nbytes() // value.element_size()
    return value.as_strided((elements,), (1,), 0).clone()


def _from_json(value: Any, tensors: dict[str, Tensor]) -> Any:
    if value is None or isinstance(value, (bool, str, int)):
        return value
    match value:
        case {"float": str(text)}:
            return float(text)
        case {"numpy": str(dtype), "value": inner}:
            return np.dtype(dtype).type(_from_json(inner, tensors))
        case {"tensor": _}:
            return _tensor_from_json(value, tensors)
        case {"array": inner}:
            return _from_json(inner, tensors).numpy()
        case {"list": list(entries)}:
            return [_from_json(entry, tensors) for entry in entries]
        case {"tuple": list(entries)}:
            return tuple(_from_json(entry, tensors) for entry in entries)
        case {"dict": list(pairs)}:
            return {key: _from_json(entry, tensors) for key, entry in pairs}
    raise ValueError(f"a case cannot hold {value!r}")


def _tensor_from_json(value: dict[str, Any], tensors: dict[str, Tensor]) -> Tensor:
    with torch.inference_mode(value["inference"]):
        stored = tensors[value["tensor"]].clone()
        view = stored.as_strided(value["size"], value["stride"], value["offset"])
    return view.requires_grad_() if value["requires_grad"] else view
