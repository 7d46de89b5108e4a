"""The project's own reference, as an implementation under test."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import Tensor

from conformance.protocol import Encoder, Interface
from reference import FAMILIES, EncoderConfig, ReferenceEncoder


class Reference:
    """The reference encoder, which refuses malformed input and computes every grid."""

    name = "reference"
    families = FAMILIES
    interface: Interface = "items"

    def __init__(self) -> None:
        try:
            self.version = version("step3vl-conformance")
        except PackageNotFoundError:
            self.version = "not installed"

    def build(
        self,
        config: EncoderConfig,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Encoder:
        """Build a reference encoder; names may carry the prefix `model.` (WE-03)."""
        published = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
        return ReferenceEncoder(config, published, device=device, dtype=dtype)


def implementation() -> Reference:
    """The implementation."""
    return Reference()
