"""Runs an implementation on cases: from a case to an outcome.

It runs in the suite's process or, sent there as source, on the far side of an isolated run, which
has neither `reference` nor Hypothesis; what it is asked to run is therefore a `Request`, which a
case is.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from conformance.outcome import Outcome, Raised, Returned, Stage
from conformance.protocol import Config, Implementation
from conformance.state import changed, read_state, state_kept
from strategies.encoding import Encoded, decode, encode

_CACHED_ENCODERS = 8

# Bytes. Thousands of pictures of the published size; a larger result is never the one asked for.
LARGEST_RESULT = 2**30


class Weights(Protocol):
    """Tensors under their published names, and a hash of them."""

    @property
    def digest(self) -> str:
        """Equal if, and only if, names and tensors are."""

    def items(self) -> Iterable[tuple[str, Tensor]]:
        """Each name with its tensor."""


class Request(Protocol):
    """What an encoder is called with; `strategies.Case` is one."""

    @property
    def config(self) -> Config:
        """Of the encoder; hashable."""

    @property
    def weights(self) -> Weights:
        """Of the encoder."""

    @property
    def dtype(self) -> torch.dtype:
        """The encoder's."""

    @property
    def encoded(self) -> Encoded:
        """A dict whose `items` are dicts of `feature` and `model_specific_data`."""

    @property
    def placement(self) -> Any:
        """Where `feature`, `patches` and `counts` lie: `model` or `cpu`."""


@dataclass(frozen=True)
class Item:
    """What an encoder gets for each item: a fresh copy of the caller's."""

    feature: Any
    model_specific_data: dict[str, Any]


@dataclass(frozen=True)
class Observation:
    """An outcome and what the call did beside it.

    Attributes:
        outcome: of the call.
        mutated: the caller's data that differs afterwards, such as `item 0 feature`.
        disturbed: the global state that differs afterwards, such as `grad mode`.
    """

    outcome: Outcome
    mutated: tuple[str, ...]
    disturbed: tuple[str, ...]


@dataclass
class _Built:
    encoder: Any
    weights: str


class Driver:
    """Builds encoders, keeps a few, and calls them; nothing that an encoder raises gets out.

    Each call gets fresh copies of the items, and global state is put back after it.

    Args:
        implementation: under test.
        device: where its encoders compute.

    Attributes:
        seconds: spent inside the implementation's calls.
        last_trace: the traceback of the last exception that it raised, as text.
        last_words: what it printed before its process ended; nothing, where it is the suite's own.
        restarts: how often its process was started again; never, where it is the suite's own.
        given_up: why it is not run any more; empty if it is.
    """

    last_words = ""
    restarts = 0
    given_up = ""

    def __init__(self, implementation: Implementation, device: torch.device) -> None:
        self.implementation = implementation
        self.device = device
        self.seconds = 0.0
        self.last_trace = ""
        self._encoders: OrderedDict[object, _Built] = OrderedDict()

    def run(self, case: Request, *, fresh: bool = False) -> Outcome:
        """The outcome of one call.

        Args:
            case: what to call with.
            fresh: build a new encoder for it, rather than load the weights into a kept one.
        """
        return self.sequence([case], fresh=fresh)[0]

    def sequence(self, cases: Sequence[Request], *, fresh: bool = False) -> list[Outcome]:
        """The outcomes of several calls, read after the last of them (SE-03).

        Consecutive calls with the same configuration and weights go to the same encoder.
        """
        with state_kept():
            results: list[Tensor | Raised] = []
            for index, case in enumerate(cases):
                encoder = self._encoder(case, fresh=fresh and index == 0)
                results.append(
                    encoder if isinstance(encoder, Raised) else self._call(encoder, case)
                )
            self._forget_broken(cases, results)
            return [r if isinstance(r, Raised) else _returned(r) for r in results]

    def forget(self) -> None:
        """Build every encoder anew, so that no earlier call can matter."""
        self._encoders.clear()

    def close(self) -> None:
        """Nothing: it has no process of its own to end."""

    def rest(self) -> None:
        """Nothing, as `close`."""

    def observe(self, case: Request) -> Observation:
        """The outcome of one call and its side effects (SE-01, SE-05)."""
        with state_kept():
            encoder = self._encoder(case)
            if isinstance(encoder, Raised):
                return Observation(encoder, (), ())
            items = self._items(case)
            before, state = _fingerprints(items), read_state()
            result = self._attempt(lambda: encoder.get_image_feature(items))
            disturbed = changed(state, read_state())
            mutated = changed(before, _fingerprints(items))
            self._forget_broken([case], [result])
            outcome = result if isinstance(result, Raised) else _returned(result)
            return Observation(outcome, mutated, disturbed)

    def _forget_broken(self, cases: Sequence[Request], results: Sequence[Any]) -> None:
        """Build anew after an error: what it left behind is SE-04's affair, and no other's."""
        for case, result in zip(cases, results, strict=True):
            if isinstance(result, Raised):
                self._encoders.pop((case.config, case.dtype), None)

    def _call(self, encoder: Any, case: Request) -> Any:
        with torch.no_grad():
            # Placing the items fails too where an earlier call has spoilt the device.
            return self._attempt(lambda: encoder.get_image_feature(self._items(case)))

    def _attempt(self, act: Callable[[], Any], stage: Stage = "call") -> Any:
        """Whatever an act gives, or `Raised`; a call must give a tensor."""
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what an implementation warns of is its own affair
                result = act()
            if stage == "call" and not isinstance(result, Tensor):
                kind = type(result).__name__
                raise TypeError(f"get_image_feature returned a {kind}, not a tensor")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too, and what test frameworks skip by
            self.last_trace = "".join(traceback.format_exception(error))
            return Raised.of(error, stage)
        finally:
            if stage == "call":
                self.seconds += time.perf_counter() - start
        return result

    def _encoder(self, case: Request, *, fresh: bool = False) -> Any:
        key = (case.config, case.dtype)
        kept = None if fresh else self._encoders.get(key)
        if kept is not None and kept.weights == case.weights.digest:
            self._encoders.move_to_end(key)
            return kept.encoder
        self._encoders.pop(key, None)
        weights = {name: tensor.clone() for name, tensor in case.weights.items()}
        if kept is not None and hasattr(kept.encoder, "reload"):
            encoder = self._reload(kept.encoder, weights)
        else:
            encoder = self._build(case, weights)
        if not isinstance(encoder, Raised):
            self._encoders[key] = _Built(encoder, case.weights.digest)
            if len(self._encoders) > _CACHED_ENCODERS:
                self._encoders.popitem(last=False)
        return encoder

    def _build(self, case: Request, weights: Mapping[str, Tensor]) -> Any:
        def build() -> Any:
            return self.implementation.build(
                case.config, weights, device=self.device, dtype=case.dtype
            )

        return self._attempt(build, "build")

    def _reload(self, encoder: Any, weights: Mapping[str, Tensor]) -> Any:
        failed = self._attempt(lambda: encoder.reload(weights), "load")
        return failed if isinstance(failed, Raised) else encoder

    def _items(self, case: Request) -> list[Item]:
        items = decode(case.encoded)["items"]
        return [
            Item(
                self._place(item["feature"], case.placement.feature),
                self._placed(item["model_specific_data"], case.placement),
            )
            for item in items
        ]

    def _placed(self, data: dict[str, Any], placement: Any) -> dict[str, Any]:
        placed = dict(data)
        for name, place in (
            ("patch_pixel_values", placement.patches),
            ("num_patches", placement.counts),
        ):
            if name in placed:
                placed[name] = self._place(placed[name], place)
        return placed

    def _place(self, value: Any, place: str) -> Any:
        if place == "cpu" or self.device.type == "cpu":
            return value
        if isinstance(value, Tensor):
            return value.to(self.device)
        if isinstance(value, (list, tuple)):
            return type(value)(self._place(entry, place) for entry in value)
        return value


def _returned(result: Tensor) -> Outcome:
    try:
        _require_readable(result)
    except (MemoryError, TypeError) as error:
        return Raised.of(error, "result")
    try:
        return Returned(result.detach().cpu().clone(), str(result.device))
    except Exception as error:  # an accelerator reports a failed kernel when the result is read
        return Raised.of(error)


def _require_readable(result: Tensor) -> None:
    size = result.numel() * result.element_size()
    if size > LARGEST_RESULT:
        raise MemoryError(
            f"a result of shape {tuple(result.shape)} has {size / 2**30:.3g} GiB and is not read: "
            f"at most {LARGEST_RESULT / 2**30:g} GiB are"
        )
    if result.layout != torch.strided:
        raise TypeError(f"a result is a dense tensor, not one of layout {result.layout}")


def _fingerprints(items: Sequence[Item]) -> dict[str, object]:
    found: dict[str, object] = {}
    for index, item in enumerate(items):
        found[f"item {index} feature"] = _digest(item.feature)
        found[f"item {index} keys"] = sorted(item.model_specific_data)
        for name, value in item.model_specific_data.items():
            found[f"item {index} {name}"] = _digest(value)
    return found


def _digest(value: object) -> str:
    """A hash of a value, or why it cannot be read: an encoder may leave anything behind."""
    try:
        return encode(value).digest()
    except Exception as error:  # an accelerator's too, after a kernel failed
        return f"unreadable: {type(error).__name__}"
