"""The gateway: an interpreter somewhere, with a keeper in it that has what the far side needs."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import execnet

import conformance
from conformance.isolation import keeper
from conformance.isolation.wire import PROTOCOL
from conformance.protocol import Unavailable

_ROOT = Path(conformance.__file__).parent.parent

# What is sent. The packages' own `__init__` stay here, since that of `strategies` needs Hypothesis.
SENT = (
    "conformance/adapters/*.py",
    "conformance/device.py",
    "conformance/driver.py",
    "conformance/isolation/entry.py",
    "conformance/isolation/wire.py",
    "conformance/isolation/worker.py",
    "conformance/machine.py",
    "conformance/outcome.py",
    "conformance/protocol.py",
    "conformance/registry.py",
    "conformance/state.py",
    "strategies/encoding.py",
)
_PACKAGES = ("conformance", "conformance/adapters", "conformance/isolation", "strategies")

# Where an implementation's own file goes on another machine.
_OWN = "sent"

_GRACE = 60.0
_CLOSING = 5.0


class Lost(Exception):  # noqa: N818
    """The connection to the far side is gone; the message says how."""


@dataclass(frozen=True)
class Place:
    """Where an implementation runs, and with how much patience.

    Attributes:
        spec: an execnet specification, such as `popen//python=/other/bin/python`.
        timeout: of a call, in seconds.
        restarts: how many in a row, without an answer, end a hopeless run.
        processes: how many share the machine's memory.
    """

    spec: str
    timeout: float = 60.0
    restarts: int = 20
    processes: int = 1

    @property
    def here(self) -> bool:
        """Whether it is this machine, so that files need not be sent."""
        spec = execnet.XSpec(self.spec)
        return bool(spec.popen) and not spec.via


def find_place(
    python: str | None, gateway: str | None, *, timeout: float, restarts: int, processes: int = 1
) -> Place | None:
    """The place that options name; None for the suite's own process.

    Args:
        python: an interpreter, or None.
        gateway: an execnet specification, or None.
        timeout: of a call, in seconds.
        restarts: see `Place`.
        processes: see `Place`.

    Raises:
        Unavailable: it names none; the message is one line.
    """
    if timeout <= 0:
        raise Unavailable(f"--timeout is {timeout:g}; it must be more than 0 seconds")
    if restarts < 1:
        raise Unavailable(f"--restarts is {restarts}; it must be at least 1")
    if python is None and gateway is None:
        return None
    spec = gateway or "popen"
    try:
        parsed = execnet.XSpec(spec)
    except (ValueError, AttributeError, IndexError) as error:
        raise Unavailable(f"--gateway={spec} is no execnet specification: {error}") from None
    if not (parsed.popen or parsed.ssh or parsed.vagrant_ssh or parsed.socket):
        raise Unavailable(
            f"--gateway={spec} names no way to a Python: it starts with popen, ssh=HOST or "
            "socket=HOST:PORT"
        )
    if python is not None:
        if parsed.python:
            raise Unavailable(f"--gateway={spec} names an interpreter, so leave out --python")
        spec += f"//python={_interpreter(python) if parsed.popen else shlex.quote(python)}"
    return Place(spec, timeout, restarts, processes)


def _interpreter(python: str) -> str:
    """An interpreter on this machine; a link is kept, since it is what makes an environment."""
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        inside = Path(python, "bin", "python")
        hint = f": name its interpreter, {inside}" if inside.is_file() else ""
        raise Unavailable(f"--python={python} is no interpreter here{hint}")
    return shlex.quote(os.path.abspath(found))


class Gateway:
    """An open connection to a keeper.

    Args:
        place: where.
        impl: the implementation, as for `find_implementation`; it is looked up there.
        device: that its encoders compute on.

    Attributes:
        introduction: what the first worker said of itself.

    Raises:
        Unavailable: it cannot be reached, or cannot run the implementation; one line says why.
    """

    def __init__(self, place: Place, impl: str, device: str) -> None:
        self._place = place
        self._group = execnet.Group()
        # Ctrl-C reaches the main thread, and so ends whatever the keeper waits for.
        self._group.set_execmodel("thread", "main_thread_only")
        files, impl, sent = _files(place, impl)
        hello = {
            "protocol": PROTOCOL,
            "impl": impl,
            "sent": sent,
            "device": device,
            "processes": place.processes,
        }
        setup = {"files": files, "hello": json.dumps(hello), "timeout": place.timeout}
        with tempfile.TemporaryFile() as errors:
            try:
                with _stderr_to(errors):
                    gateway = self._group.makegateway(place.spec)
                self._channel = gateway.remote_exec(keeper)
                self._channel.send(setup)
                kind, what, *_ = self._receive(1)
            except Exception as error:  # execnet asserts, and each kind of gateway has its own
                self.close()
                reason = _last_line(errors) or " ".join(str(error).split()) or type(error).__name__
                raise Unavailable(f"{place.spec} cannot be reached: {reason}") from None
        if kind != "answer":
            self.close()
            raise Unavailable(f"{place.spec} cannot run {impl}: {what}")
        self.introduction: dict[str, Any] = json.loads(what)

    def ask(self, text: str, body: bytes, calls: int) -> tuple[Any, ...]:
        """What comes of a request: an answer, or how the worker ended.

        Args:
            text: of the request.
            body: of the request.
            calls: how many it has.

        Raises:
            Lost: the connection is gone.
        """
        try:
            self._channel.send((text, body))
            return self._receive(calls)
        except self._channel.TimeoutError:
            raise Lost("the far side does not answer") from None
        except (OSError, EOFError, self._channel.RemoteError):
            raise Lost("the connection to the far side was lost") from None

    def end_worker(self) -> None:
        """End the worker; the next request starts another."""
        with contextlib.suppress(OSError):
            self._channel.send(None)

    def close(self) -> None:
        """End everything on the far side."""
        self._group.terminate(timeout=_CLOSING)

    def _receive(self, calls: int) -> tuple[Any, ...]:
        """The keeper watches the time; this is for a connection that went silent."""
        longest = self._place.timeout * (2 * keeper.PATIENCE + 2 * calls) + _GRACE
        received: tuple[Any, ...] = self._channel.receive(longest)
        return received


def _files(place: Place, impl: str) -> tuple[dict[str, str], str, bool]:
    """What is sent, by its name there; the implementation's name there; whether it was sent."""
    files = {f"{package}/__init__.py": "" for package in _PACKAGES}
    for pattern in SENT:
        for path in _ROOT.glob(pattern):
            files.setdefault(path.relative_to(_ROOT).as_posix(), path.read_text(encoding="utf-8"))
    name, colon, attribute = impl.rpartition(":")
    own = Path(name)
    if not name.endswith(".py") or not own.is_file():
        return files, impl, False
    if place.here:
        return files, f"{own.resolve()}{colon}{attribute}", False
    files[f"{_OWN}/{own.name}"] = own.read_text(encoding="utf-8")
    return files, f"{_OWN}/{own.name}{colon}{attribute}", True


@contextlib.contextmanager
def _stderr_to(file: IO[bytes]) -> Iterator[None]:
    """Let processes that are started now write their errors to a file."""
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
