"""A remote implementation, and the driver that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.device import find_device
from conformance.driver import Driver, Observation
from conformance.isolation import wire
from conformance.isolation.gateway import Gateway, Lost, Place
from conformance.outcome import Crashed, Outcome, TimedOut
from conformance.protocol import Implementation, Interface, Unavailable
from conformance.registry import find_implementation
from strategies import Case

_FATAL = "Fatal Python error"
_WORDS = 5

# So many times the restarts that are allowed in a row are allowed in all.
_IN_ALL = 20


@dataclass(frozen=True)
class RemoteImplementation:
    """What an implementation in another interpreter says of itself.

    Attributes:
        name, version, families, interface, replacements: as in `Implementation`.
        impl: its name on the command line.
        place: where it runs.
        device: that its encoders compute on, there.
        machine: that it runs on; see `conformance.machine`.
        gateway: open, for the driver.
    """

    name: str
    version: str
    families: tuple[str, ...]
    interface: Interface
    replacements: tuple[str, ...]
    impl: str
    place: Place
    device: torch.device
    machine: dict[str, Any]
    gateway: Gateway


def find_remote(impl: str, place: Place, device: str) -> RemoteImplementation:
    """Start an implementation in another interpreter.

    Args:
        impl: as for `find_implementation`; looked up there.
        place: where.
        device: looked for there.

    Raises:
        Unavailable: it cannot be run there; the message is one line that says what to do.
    """
    gateway = Gateway(place, impl, device)
    said = gateway.introduction
    return RemoteImplementation(
        name=said["name"],
        version=said["version"],
        families=tuple(said["families"]),
        interface=said["interface"],
        replacements=tuple(said["replacements"]),
        impl=impl,
        place=place,
        device=torch.device(device),
        machine=said["machine"],
        gateway=gateway,
    )


class RemoteDriver:
    """Has cases run in another process; what a `Driver` is in this one.

    A process that ends, hangs, or whose device answers no more is an outcome, and is started
    again.

    Args:
        implementation: under test.

    Attributes:
        implementation: under test.
        device: where its encoders compute.
        seconds: spent inside the implementation's calls.
        last_trace: the traceback of the last exception that it raised, or what it printed before
            it ended.
        restarts: how often its process was started again.
        given_up: why it is not run any more; empty if it is.
    """

    def __init__(self, implementation: RemoteImplementation) -> None:
        self.implementation = implementation
        self.device = implementation.device
        self.seconds = 0.0
        self.last_trace = ""
        self.restarts = 0
        self.given_up = ""
        self._gateway: Gateway | None = implementation.gateway
        self._tail = ""
        self._end: Crashed | TimedOut | None = None
        self._unanswered = 0
        self._sent: set[str] = set()
        self._forget = False

    def run(self, case: Case, *, fresh: bool = False) -> Outcome:
        """The outcome of one call; see `Driver.run`."""
        return self.sequence([case], fresh=fresh)[0]

    def sequence(self, cases: Sequence[Case], *, fresh: bool = False) -> list[Outcome]:
        """The outcomes of several calls; all of them the end of the process, if it ends."""
        found = self._ask(cases, fresh=fresh)
        if isinstance(found, Crashed | TimedOut):
            return [found for _ in cases]
        return [wire.read_outcome(value) for value in found]

    def observe(self, case: Case) -> Observation:
        """The outcome of one call and its side effects; see `Driver.observe`."""
        found = self._ask([case], observe=True)
        if isinstance(found, Crashed | TimedOut):
            return Observation(found, (), ())
        return wire.read_observation(found[0])

    def forget(self) -> None:
        """Build every encoder anew, so that no earlier call can matter."""
        self._forget = True

    def rest(self) -> None:
        """End the process until it is needed."""
        if self._gateway is not None:
            self._gateway.end_worker()

    @property
    def last_words(self) -> str:
        """What the process printed before it last ended: a few lines, those of the crash first."""
        _, fatal, after = self._tail.rpartition(_FATAL)
        lines = [line.strip()[:200] for line in (fatal + after).splitlines() if line.strip()]
        return "\n".join(lines[:_WORDS] if fatal else lines[-_WORDS:])

    def close(self) -> None:
        """End everything on the far side."""
        if self._gateway is not None:
            self._gateway.close()

    def _ask(
        self, cases: Sequence[Case], *, fresh: bool = False, observe: bool = False
    ) -> list[Any] | Crashed | TimedOut:
        if self.given_up and self._end is not None:
            return self._end
        try:
            kind, what, *rest = self._exchange(cases, fresh=fresh, observe=observe)
        except Lost as reason:
            self.close()
            self._gateway = None
            kind, what, rest = "crashed", str(reason), ["call", ""]
        except Unavailable as reason:
            kind, what = "unavailable", str(reason)
        if kind == "unavailable":
            kind, what, rest = "crashed", f"it cannot be started again: {what}", ["build", ""]
        if kind != "answer":
            return self._ended(kind, what, *rest)
        self._unanswered = 0
        self._forget = False
        return self._read(what)

    def _read(self, answer: dict[str, Any]) -> list[Any]:
        self.seconds += answer["seconds"]
        self.last_trace = answer["trace"] or self.last_trace
        if answer["poisoned"]:
            self.rest()
            self._restart()
        found: list[Any] = answer["found"]
        return found

    def _exchange(self, cases: Sequence[Case], *, fresh: bool, observe: bool) -> tuple[Any, ...]:
        """Ask, and ask again with weights that the far side has no more; answers are decoded."""
        weights = {case.weights.digest: case.weights for case in cases}
        request: dict[str, Any] = {
            "cases": [wire.request_value(case) for case in cases],
            "fresh": fresh,
            "observe": observe,
            "forget": self._forget,
        }
        sent = [digest for digest in weights if digest not in self._sent]
        gateway = self._opened()
        while True:
            request["weights"] = {digest: dict(weights[digest]) for digest in sent}
            kind, *rest = gateway.ask(*wire.dumps(request), calls=len(cases))
            if kind != "answer":
                return (kind, *rest)
            self._sent |= set(sent)
            text, body = rest
            answer = wire.loads((text, body))
            if "missing" not in answer:
                return (kind, answer)
            sent = answer["missing"]

    def _opened(self) -> Gateway:
        if self._gateway is None:
            found = self.implementation
            self._gateway = Gateway(found.place, found.impl, str(found.device))
        return self._gateway

    def _ended(self, kind: str, what: Any, *rest: Any) -> Crashed | TimedOut:
        self._restart()
        self._unanswered += 1
        allowed = self.implementation.place.restarts
        if self._unanswered >= allowed:
            self.given_up = f"its process ended {allowed} times in a row without an answer"
        elif self.restarts >= _IN_ALL * allowed:
            self.given_up = f"its process ended {self.restarts} times"
        stage, self._tail = rest
        self.last_trace = self._tail
        self._end = TimedOut(what, stage) if kind == "timed out" else Crashed(what, stage)
        return self._end

    def _restart(self) -> None:
        self.restarts += 1
        self._sent.clear()
        self._forget = False


AnyImplementation = Implementation | RemoteImplementation


def find_anywhere(
    impl: str, place: Place | None, device: str
) -> tuple[AnyImplementation, torch.device]:
    """An implementation in this process or elsewhere, and its device.

    Args:
        impl: as for `find_implementation`.
        place: where it runs; None for this process.
        device: looked for where it runs.

    Raises:
        Unavailable: it cannot be run there.
        ValueError: the device is not here.
    """
    if place is None:
        where = find_device(device)
        return find_implementation(impl), where
    remote = find_remote(impl, place, device)
    return remote, remote.device


def driver_of(implementation: AnyImplementation, device: torch.device) -> Driver | RemoteDriver:
    """What runs an implementation: in this process, or where it is."""
    if isinstance(implementation, RemoteImplementation):
        return RemoteDriver(implementation)
    return Driver(implementation, device)
