"""The oracle: what a picture's rows are, and how much of them is noise.

The rows come from the reference in float64. The noise is what the reference itself loses in the
dtype and on the device under test, the largest over an ensemble of harmless ways to run it and
over oracles whose weights and pixels are moved by half a unit in the last place.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from conformance.ensemble import ENSEMBLE, jittered
from reference import EncoderConfig, ReferenceEncoder
from strategies import Weights
from strategies.encoding import encode

_REMEMBERED_PICTURES = 16384
_REMEMBERED_ENCODERS = 24
_JITTERS = (1, 2)

# An encoder and the dtype it computes in under test; or float64, with None for the truth itself and
# a seed for a jittered one.
Way = tuple[type[ReferenceEncoder], torch.dtype | int | None]

# What a picture's rows depend on: the configuration, the weights' digest and the picture's.
Key = tuple[EncoderConfig, str, str]

# A quarter of the dtype's precision: no row is known better than that.
FLOOR = 0.25


@dataclass
class _Known:
    """What is known of one picture: its rows, and its noise as far as it was measured."""

    rows: Tensor
    scale: Tensor
    single: float | None = None
    whole: float | None = None


@dataclass(frozen=True)
class Truth:
    """The rows of some pictures.

    Attributes:
        rows: `(rows, D)`, float64.
        unit: `(rows,)`, the RMS error that is one unit of noise in each row, float64.
        whole: whether the noise is the whole ensemble's or a single run's.
    """

    rows: Tensor
    unit: Tensor
    whole: bool


class Oracle:
    """Float64 truth and measured noise for a dtype on a device, remembered by content.

    Args:
        dtype: under test. Float64 is measured by the noise of float32, since right encoders keep
            norms, softmax and rotary tables in float32.
        device: under test; the truth itself is computed on the CPU.
        always_whole: measure every noise on the whole ensemble.

    Attributes:
        seconds: spent inside the reference's forward passes.
    """

    def __init__(
        self, dtype: torch.dtype, device: torch.device, *, always_whole: bool = False
    ) -> None:
        self.always_whole = always_whole
        self.noise_dtype = torch.float32 if dtype == torch.float64 else dtype
        self.device = device
        self.seconds = 0.0
        self._known: OrderedDict[Key, _Known] = OrderedDict()
        self._encoders: OrderedDict[object, ReferenceEncoder] = OrderedDict()

    def truth(
        self,
        config: EncoderConfig,
        weights: Weights,
        pictures: Sequence[Tensor],
        *,
        whole: bool = False,
    ) -> Truth:
        """The rows of some pictures, each `(3, H, W)`, in order.

        Args:
            config: of the encoder.
            weights: of the encoder.
            pictures: at least one.
            whole: measure the noise over the whole ensemble, which costs about five more runs;
                otherwise over a single run.
        """
        whole = whole or self.always_whole
        keys = [(config, weights.digest, encode(picture).digest()) for picture in pictures]
        by_key = dict(zip(keys, pictures, strict=True))
        self._learn(config, weights, by_key, whole)
        known = [self._known[key] for key in keys]
        units = [
            entry.scale * max((entry.whole if whole else entry.single) or 0.0, self._floor)
            for entry in known
        ]
        return Truth(torch.cat([entry.rows for entry in known]), torch.cat(units), whole)

    @property
    def _floor(self) -> float:
        return FLOOR * torch.finfo(self.noise_dtype).eps

    def _learn(
        self,
        config: EncoderConfig,
        weights: Weights,
        pictures: dict[Key, Tensor],
        whole: bool,
    ) -> None:
        for key, picture in pictures.items():
            if key not in self._known:
                rows = self._encode(
                    self._encoder((ReferenceEncoder, None), config, weights), picture
                )
                self._known[key] = _Known(rows, torch.maximum(_rms(rows, dim=-1), _rms(rows)))
            if self._unmeasured(key, whole):
                self._measure(config, weights, key, picture, whole)
        for key in pictures:
            self._known.move_to_end(key)
        while len(self._known) > max(_REMEMBERED_PICTURES, len(pictures)):
            self._known.popitem(last=False)

    def _unmeasured(self, key: Key, whole: bool) -> bool:
        known = self._known[key]
        return (known.whole if whole else known.single) is None

    def _measure(
        self, config: EncoderConfig, weights: Weights, key: Key, picture: Tensor, whole: bool
    ) -> None:
        ways: list[Way] = [(ReferenceEncoder, self.noise_dtype)]
        if whole:
            ways += [(encoder, self.noise_dtype) for encoder in ENSEMBLE.values()]
        results = [self._encode(self._encoder(way, config, weights), picture) for way in ways]
        for seed in _JITTERS if whole else ():
            moved = jittered(picture.double(), self.noise_dtype, seed)
            encoder = self._encoder((ReferenceEncoder, seed), config, weights)
            results.append(self._encode(encoder, moved))
        known = self._known[key]
        losses = [_rms(rows - known.rows, dim=-1) / known.scale for rows in results]
        loss = float(torch.stack(losses).nan_to_num(nan=torch.inf).max())
        known.single = known.single if whole else loss
        known.whole = loss if whole else known.whole

    def _encode(self, encoder: ReferenceEncoder, picture: Tensor) -> Tensor:
        """The rows of a picture alone: what is known of it never hangs on its company."""
        start = time.perf_counter()
        rows = encoder.encode(picture[None])[0].cpu().double()
        self.seconds += time.perf_counter() - start
        return rows

    def _encoder(self, way: Way, config: EncoderConfig, weights: Weights) -> ReferenceEncoder:
        key = (way, config, weights.digest)
        if key not in self._encoders:
            self._encoders[key] = self._build(way, config, weights)
            if len(self._encoders) > _REMEMBERED_ENCODERS:
                self._encoders.popitem(last=False)
        self._encoders.move_to_end(key)
        return self._encoders[key]

    def _build(self, way: Way, config: EncoderConfig, weights: Weights) -> ReferenceEncoder:
        encoder, detail = way
        if isinstance(detail, torch.dtype):
            return encoder(config, weights, dtype=detail, device=self.device)
        if detail is None:
            return encoder(config, weights, dtype=torch.float64)
        moved = {
            name: jittered(tensor.double(), self.noise_dtype, detail)
            for name, tensor in weights.items()
        }
        return encoder(config, moved, dtype=torch.float64)


def _rms(values: Tensor, dim: int | None = None) -> Tensor:
    return values.square().mean().sqrt() if dim is None else values.square().mean(dim).sqrt()
