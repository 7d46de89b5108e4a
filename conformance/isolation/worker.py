"""The worker: runs the implementation and answers the keeper."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch

from conformance.device import find_device, prepare_device
from conformance.driver import Driver
from conformance.isolation import wire
from conformance.isolation.entry import answer
from conformance.machine import machine
from conformance.outcome import Stage
from conformance.protocol import Implementation, Unavailable
from conformance.registry import find_implementation

OLDEST_TORCH = (2, 6)

_KEPT_WEIGHTS = 8


def serve(connection: Connection[Any, Any], hello: Mapping[str, Any], folder: str) -> None:
    """Introduce the implementation and answer requests until the keeper is gone.

    Raises:
        EOFError: it is.
    """
    try:
        implementation, device = _found(hello, folder)
    except (ValueError, Unavailable) as reason:
        answer(connection, json.dumps({"unavailable": str(reason)}))
        return
    answer(connection, json.dumps(_introduction(implementation, device)))
    worker = Worker(connection, implementation, device)
    while True:
        text, body = connection.recv_bytes().decode(), connection.recv_bytes()
        answer(connection, *worker.answer((text, body)))


def _found(hello: Mapping[str, Any], folder: str) -> tuple[Implementation, torch.device]:
    if hello["protocol"] != wire.PROTOCOL:
        raise Unavailable(
            f"it speaks protocol {wire.PROTOCOL}, not {hello['protocol']}: another "
            "version of the suite stands before the one that was sent"
        )
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise Unavailable(f"it has torch {torch.__version__}: {oldest} or newer is needed")
    device = find_device(hello["device"])
    prepare_device(device)
    spec = os.path.join(folder, hello["impl"]) if hello["sent"] else hello["impl"]
    return find_implementation(spec), device


def _introduction(implementation: Implementation, device: torch.device) -> dict[str, Any]:
    """What the near side must know of the implementation and this process."""
    return {
        "name": implementation.name,
        "version": str(implementation.version),
        "families": list(implementation.families),
        "interface": implementation.interface,
        "replacements": list(getattr(implementation, "replacements", ())),
        "machine": machine(implementation, device),
    }


class MarkedDriver(Driver):
    """A driver that says what it does next.

    Args:
        implementation: under test.
        device: where its encoders compute.
        mark: called with each stage.
    """

    def __init__(
        self, implementation: Implementation, device: torch.device, mark: Callable[[Stage], None]
    ) -> None:
        super().__init__(implementation, device)
        self._mark = mark

    def _attempt(self, act: Callable[[], Any], stage: Stage = "call") -> Any:
        self._mark(stage)
        return super()._attempt(act, stage)


class Worker:
    """Answers requests.

    Args:
        connection: to the keeper.
        implementation: under test.
        device: where its encoders compute.
    """

    def __init__(
        self, connection: Connection[Any, Any], implementation: Implementation, device: torch.device
    ) -> None:
        self._driver = MarkedDriver(
            implementation, device, lambda stage: connection.send_bytes(stage.encode())
        )
        self._weights: OrderedDict[str, wire.FarWeights] = OrderedDict()

    def answer(self, message: wire.Message) -> wire.Message:
        """What comes of a request: `sequence`, `observe` or `forget`."""
        request = wire.loads(message)
        for digest, tensors in request["weights"].items():
            self._weights[digest] = wire.FarWeights(digest, tensors)
        missing = [
            case["weights"] for case in request["cases"] if case["weights"] not in self._weights
        ]
        if missing:
            return wire.dumps({"missing": missing})
        for case in request["cases"]:
            self._weights.move_to_end(case["weights"])
        cases = [wire.read_request(case, self._weights) for case in request["cases"]]
        while len(self._weights) > max(_KEPT_WEIGHTS, len(cases)):
            self._weights.popitem(last=False)
        self._driver.seconds, self._driver.last_trace = 0.0, ""
        found = self._run(request, cases)
        said = {
            "seconds": self._driver.seconds,
            "trace": self._driver.last_trace,
            "poisoned": self._poisoned(),
        }
        return wire.dumps({"found": found, **said})

    def _run(self, request: Mapping[str, Any], cases: Sequence[wire.FarRequest]) -> Any:
        if request["forget"]:
            self._driver.forget()
        if request["observe"]:
            return [wire.observation_value(self._driver.observe(case)) for case in cases]
        found = self._driver.sequence(cases, fresh=request["fresh"])
        return [wire.outcome_value(outcome) for outcome in found]

    def _poisoned(self) -> bool:
        """Whether the device answers no more: one failed kernel spoils a whole CUDA process."""
        if not self._driver.last_trace or self._driver.device.type == "cpu":
            return False
        try:
            find_device(str(self._driver.device))
        except ValueError:
            return True
        return False
