"""An encoder that does what the key `do` of its first item asks: it ends, hangs, prints, grows.

It needs torch alone, as an implementation in another interpreter does.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import torch


def _segfault() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    while True:
        pass


def _hang_in_c() -> None:
    ctypes.PyDLL(None).sleep(1000)  # holds the interpreter's lock


def _grow() -> None:
    kept = []
    while True:
        kept.append(torch.empty(2**28, dtype=torch.uint8))


def _print() -> None:
    for _ in range(4):
        print("x" * 2**20)
        os.write(1, b"y" * 2**20)
        os.write(2, b"z" * 2**20)


def _close_stdin() -> None:
    sys.stdin.close()
    for descriptor in (0, 1, 2):
        os.close(descriptor)


def _leave_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(1000,)).start()


def _leave_a_child() -> None:
    if os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    os._exit(5)


def _modules() -> None:
    unwanted = ("hypothesis", "pytest", "reference", "rich", "click", "packaging", "execnet")
    raise LookupError(" ".join(name for name in unwanted if name in sys.modules))


def _say(what: object) -> None:
    raise LookupError(str(what))


DOING = {
    "segfault": _segfault,
    "abort": os.abort,
    "exit": lambda: os._exit(3),
    "leave": lambda: sys.exit(4),
    "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "hang": _hang,
    "hang in c": _hang_in_c,
    "grow": _grow,
    "print": _print,
    "print and exit": lambda: (print("out of luck"), os._exit(1)),
    "close stdin": _close_stdin,
    "close everything": lambda: os.closerange(0, 1000),
    "kill the keeper": lambda: os.kill(os.getppid(), signal.SIGKILL),
    "leave a thread": _leave_a_thread,
    "leave a child": _leave_a_child,
    "start a child": lambda: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(9)"]),
    "disturb": lambda: torch.set_default_dtype(torch.float64),
    "raise": lambda: {}["nothing"],
    "modules": _modules,
    "pid": lambda: _say(os.getpid()),
    "threads": lambda: _say(torch.get_num_threads()),
}

RETURNING = {
    "huge": lambda: torch.empty(2**31 + 2**29, dtype=torch.float32),
    "huge view": lambda: torch.zeros(1, 1).expand(2**20, 2560),
    "nothing": lambda: None,
    "sparse": lambda: torch.eye(3).to_sparse(),
    "complex": lambda: torch.zeros(2, 2, dtype=torch.complex128),
}


class Encoder:
    """Gives one row of ones for each item, unless asked for something else."""

    def __init__(self, width: int) -> None:
        self.width = width

    def get_image_feature(self, items):  # noqa: D102
        asked = items[0].model_specific_data.get("do")
        if asked in RETURNING:
            return RETURNING[asked]()
        if asked == "mutate":
            items[0].feature.add_(1)
        DOING.get(asked, lambda: None)()
        return torch.ones(len(items), self.width)


class Unruly:
    """An implementation of it."""

    name, version = "unruly", "1.0"
    families = ("step3-vl-10b",)
    interface = "items"

    def build(self, config, weights, *, device, dtype):  # noqa: ARG002
        """Build an encoder."""
        return Encoder(config.to_hf()["text_config"]["hidden_size"])


unruly = Unruly()
