"""The keeper: starts a worker, hands it requests, and ends it for sure.

It runs in the gateway's own process, is sent there as source, and needs the standard library
alone. It never runs the implementation, so that nothing that an implementation does can reach the
gateway's protocol. It also runs on Pythons too old for the worker, to say so.

A request is text and bytes. What the worker sends back is one of

- `build`, `load`, `call`: what it does next, which may take `timeout` seconds from now;
- `answer`, then text and bytes: it waits for the next request.

What the keeper sends back is one of

- `("answer", text, bytes)`;
- `("crashed", how, stage, last lines)`, `("timed out", seconds, stage, last lines)`;
- `("unavailable", why)`: no worker can be started.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from typing import IO, Any

OLDEST_PYTHON = (3, 10)

# Importing an engine and building the first encoder may take this many times as long as a call.
PATIENCE = 10

_TAIL = 4096
_ENTER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from conformance.isolation.entry import enter; enter(sys.argv[1], int(sys.argv[2]))"
)


class Worker:
    """A process that runs the implementation; started when it is needed.

    Args:
        folder: of the modules that were sent.
        hello: the first message of every process, text.
        timeout: of a call, in seconds.
        channel: to the near side, which may go away while a call lasts.
    """

    def __init__(self, folder: str, hello: str, timeout: float, channel: Any) -> None:
        self.folder = folder
        self.hello = hello
        self.timeout = timeout
        self.channel = channel
        self.process: Any = None

    def ask(self, text: str, body: bytes) -> tuple[Any, ...]:
        """Hand over a request and wait for what comes of it."""
        if self.process is None:
            started = self.start()
            if started[0] != "answer":
                self.kill()
                return started
        return self._exchange(text, body)

    def start(self) -> tuple[Any, ...]:
        """Start the process; the answer is what it says of itself."""
        ours, theirs = socket.socketpair()
        for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO):  # it may stop inside a message
            patience = struct.pack("ll", int(self.timeout) + 1, 0)
            ours.setsockopt(socket.SOL_SOCKET, option, patience)
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", _ENTER, self.folder, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.tail = b""
        self.called = False
        self.drain = threading.Thread(target=self._drain, args=(self.process.stdout,), daemon=True)
        self.drain.start()
        return self._introduced(self._exchange(self.hello, b""))

    def _introduced(self, answer: tuple[Any, ...]) -> tuple[Any, ...]:
        kind, what, *rest = answer
        if kind == "answer":
            why = json.loads(what).get("unavailable")
            return ("unavailable", why) if why else answer
        if kind == "timed out":
            return ("unavailable", f"it does not start within {what:g} s")
        printed = rest[1].strip().splitlines()[-1:] or ["nothing was printed"]
        return ("unavailable", f"its process ended at once ({what}): {printed[0]}")

    def kill(self) -> None:
        """End the process and everything that it started in its group."""
        if self.process is not None:
            process, self.process = self.process, None
            for end in (process.kill, lambda: os.killpg(process.pid, signal.SIGKILL)):
                with contextlib.suppress(OSError):  # already gone
                    end()
            process.wait()
            self.connection.close()
            self.drain.join(1)

    def _exchange(self, text: str, body: bytes) -> tuple[Any, ...]:
        self._enter("load", PATIENCE)
        try:
            self.connection.send_bytes(text.encode())
            self.connection.send_bytes(body)
            while True:
                kind = self._receive().decode()
                if kind == "answer":
                    text = self.connection.recv_bytes().decode()
                    return (kind, text, self.connection.recv_bytes())
                first = kind == "build" and not self.called
                self._enter(kind, PATIENCE if first else 1)
        except (BlockingIOError, TimeoutError):
            return self._ended("timed out", self.allowed)
        except (EOFError, OSError):
            return self._ended("crashed", self._how())

    def _enter(self, stage: str, patience: float) -> None:
        self.called = self.called or stage == "call"
        self.stage, self.allowed = stage, self.timeout * patience
        self.deadline = time.monotonic() + self.allowed

    def _receive(self) -> bytes:
        """What comes next; a process that ended may have left others that hold its connection."""
        while not self.connection.poll(0.2):
            if time.monotonic() > self.deadline:
                raise TimeoutError
            if _closed(self.channel):
                raise SystemExit
            if self.process.poll() is not None and not self.connection.poll(0):
                raise EOFError
        return self.connection.recv_bytes()

    def _how(self) -> str:
        try:
            status = self.process.wait(2)
        except subprocess.TimeoutExpired:
            return "it closed its connection"
        if status >= 0:
            return f"exit status {status}"
        names = {number.value: number.name for number in signal.Signals}
        return names.get(-status, f"signal {-status}")

    def _ended(self, kind: str, what: object) -> tuple[Any, ...]:
        stage = self.stage
        self.kill()
        return (kind, what, stage, self.tail.decode(errors="replace"))

    def _drain(self, printed: IO[bytes]) -> None:
        with printed:
            while True:
                chunk = os.read(printed.fileno(), 65536)
                if not chunk:
                    break
                self.tail = (self.tail + chunk)[-_TAIL:]


def _closed(channel: Any) -> bool:
    try:
        channel.waitclose(0)
    except channel.TimeoutError:
        return False
    except EOFError:
        pass
    return True


def keep(channel: Any) -> None:
    """Serve the near side until it is gone.

    Args:
        channel: first comes a dict of `files`, `hello` and `timeout`, then requests; `None` ends
            the worker, and the next request starts another.
    """
    if sys.version_info < OLDEST_PYTHON:
        found, oldest = ".".join(map(str, sys.version_info[:3])), ".".join(map(str, OLDEST_PYTHON))
        channel.send(("unavailable", f"it is Python {found}: {oldest} or newer is needed"))
        return
    setup = channel.receive()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        for name, source in setup["files"].items():
            file = pathlib.Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source, encoding="utf-8")
        worker = Worker(folder, setup["hello"], setup["timeout"], channel)
        try:
            channel.send(worker.start())
            for request in channel:
                if request is None:
                    worker.kill()
                else:
                    channel.send(worker.ask(*request))
        finally:
            worker.kill()


if __name__ == "__channelexec__":
    keep(channel)  # type: ignore[name-defined]  # noqa: F821
