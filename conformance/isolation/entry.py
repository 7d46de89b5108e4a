"""Where a worker begins: before anything but the standard library is imported."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import importlib
import json
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

NEEDED = ("torch", "numpy", "safetensors")

# Out of the way of code that closes the first few descriptors.
_DESCRIPTOR = 100

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def enter(folder: str, descriptor: int) -> NoReturn:
    """Serve the keeper until it is gone.

    Args:
        folder: of the modules that were sent.
        descriptor: of the connection.
    """
    connection = Connection(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR))
    os.close(descriptor)
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an orderly exit takes seconds
    _die_with_the_keeper()
    hello = json.loads(connection.recv_bytes())
    connection.recv_bytes()
    _limit(hello)
    try:
        if missing := _missing():
            answer(connection, json.dumps({"unavailable": missing}))
        else:
            # Imports torch.
            worker = importlib.import_module("conformance.isolation.worker")
            worker.serve(connection, hello, folder)
    except EOFError:
        pass
    # Threads that the implementation left would keep an orderly exit waiting.
    os._exit(0)


def answer(connection: Connection[Any, Any], text: str, body: bytes = b"") -> None:
    """Send the keeper what it waits for."""
    for part in (b"answer", text.encode(), body):
        connection.send_bytes(part)


def _missing() -> str:
    """What cannot be imported here, on one line; empty if nothing."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except Exception as error:  # a library that it needs can be missing or broken too
            reason = " ".join(str(error).split())
            install = f"run {sys.executable} -m pip install {name}"
            return f"{sys.executable} cannot import {name} ({reason}): {install}"
    return ""


def _die_with_the_keeper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _limit(hello: dict[str, Any]) -> None:
    """No core files; and no more memory than the machine can spare, which is an error then.

    Not beside an accelerator: its driver maps far more than it uses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # where there is one: if memory runs out, end this process
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    if hello["device"].partition(":")[0] == "cpu":
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = physical // (2 * hello["processes"])
        with contextlib.suppress(ValueError, OSError):  # a lower one is set, or it has none
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
