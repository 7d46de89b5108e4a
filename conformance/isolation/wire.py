"""What crosses between the two sides: JSON text and the bytes of a safetensors file."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from conformance.driver import Observation
from conformance.outcome import Outcome, Raised, Returned
from strategies.encoding import Encoded, decode, encode

# Changes whenever either side of another version would misread the other.
PROTOCOL = 1

Message = tuple[str, bytes]


def dumps(value: Any) -> Message:
    """A value that `strategies.encoding` can encode, as text and bytes."""
    encoded = encode(value)
    return encoded.header, save(encoded.tensors)


def loads(message: Message) -> Any:
    """The value of a message."""
    header, body = message
    return decode(Encoded(header, load(body)))


class FarConfig:
    """A configuration on the far side: its family, its fields as attributes, `to_hf()`.

    Args:
        text: JSON of `fields` (such as `width`, `heads`, `head_dim`, `grid`) and `hf`.

    Attributes:
        fields: what `reference.EncoderConfig` was made with, by name.
    """

    def __init__(self, text: str) -> None:
        content = json.loads(text)
        self._hf = json.dumps(content["hf"])
        self.fields: dict[str, Any] = content["fields"]
        vars(self).update(self.fields | content["derived"])

    family: str

    def to_hf(self) -> dict[str, Any]:
        """The published `config.json` shape."""
        found: dict[str, Any] = json.loads(self._hf)
        return found


# The same text gives the same object, by which encoders are kept.
far_config = functools.lru_cache(maxsize=None)(FarConfig)


def config_text(config: Any) -> str:
    """What `FarConfig` is made of.

    Args:
        config: a `reference.EncoderConfig`.
    """
    derived = {"head_dim": config.head_dim, "grid": config.grid}
    fields = dataclasses.asdict(config)
    return json.dumps({"fields": fields, "hf": config.to_hf(), "derived": derived})


@dataclass(frozen=True)
class FarWeights:
    """Weights on the far side."""

    digest: str
    tensors: Mapping[str, Tensor]

    def items(self) -> Iterable[tuple[str, Tensor]]:
        """Each name with its tensor."""
        return self.tensors.items()


@dataclass(frozen=True)
class FarRequest:
    """A case on the far side: all but what the suite knows of it."""

    config: FarConfig
    weights: FarWeights
    dtype: torch.dtype
    encoded: Encoded
    placement: Any


def request_value(case: Any) -> dict[str, Any]:
    """A case without its weights, to be encoded.

    Args:
        case: a `strategies.Case`.
    """
    return {
        "config": config_text(case.config),
        "weights": case.weights.digest,
        "dtype": str(case.dtype).removeprefix("torch."),
        "placement": dataclasses.asdict(case.placement),
        "header": case.encoded.header,
        "tensors": case.encoded.tensors,
    }


def read_request(value: Mapping[str, Any], weights: Mapping[str, FarWeights]) -> FarRequest:
    """The request of a value.

    Raises:
        KeyError: its weights are not among those given.
    """
    return FarRequest(
        far_config(value["config"]),
        weights[value["weights"]],
        getattr(torch, value["dtype"]),
        Encoded(value["header"], value["tensors"]),
        SimpleNamespace(**value["placement"]),
    )


def outcome_value(outcome: Outcome) -> dict[str, Any]:
    """A result or an exception, to be encoded."""
    if isinstance(outcome, Returned):
        try:
            save({"": outcome.tensor.new_empty(0)})
        except KeyError as error:  # safetensors has no such dtype
            return dataclasses.asdict(Raised.of(error, "result"))
        return {"tensor": outcome.tensor, "device": outcome.device}
    return dataclasses.asdict(outcome)


def read_outcome(value: Mapping[str, Any]) -> Outcome:
    """The result or the exception of a value."""
    return Returned(**value) if "tensor" in value else Raised(**value)


def observation_value(seen: Observation) -> dict[str, Any]:
    """An outcome and its side effects, to be encoded."""
    return {
        "outcome": outcome_value(seen.outcome),
        "mutated": seen.mutated,
        "disturbed": seen.disturbed,
    }


def read_observation(value: Mapping[str, Any]) -> Observation:
    """The outcome and the side effects of a value."""
    return Observation(read_outcome(value["outcome"]), value["mutated"], value["disturbed"])
