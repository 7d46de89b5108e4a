"""What every engine needs of its process: one rank, a device, and to leave things as they were."""

from __future__ import annotations

import atexit
import contextlib
import logging
import random
import warnings
from collections.abc import Iterator

import torch


def indexed(device: torch.device) -> torch.device:
    """The same device with the index that torch would choose."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def make_group_of_one(device: torch.device) -> str:
    """Make torch's default process group of this process alone, unless there is one.

    The store lives in memory, so that processes side by side share neither a file nor a port.

    Returns:
        The backend: nccl on a GPU, gloo elsewhere.
    """
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()  # type: ignore[attr-defined]
        torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
        atexit.register(_destroy_groups)
    return backend


def _destroy_groups() -> None:
    """Destroy the groups; nccl complains about those that outlive Python."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make `dtype` torch's default, as an engine does while it constructs a model."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def state_kept(device: torch.device) -> Iterator[None]:
    """Leave random generators, warning filters and logging as they were; be quiet meanwhile.

    Importing an engine draws from `random`, warns about the GPU that is not there and changes
    warning filters; constructors draw initial weights from torch's generators.
    """
    python, silenced = random.getstate(), logging.root.manager.disable
    gpus = [device.index] if device.type == "cuda" else []
    logging.disable(logging.WARNING)
    try:
        with torch.random.fork_rng(gpus), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(silenced)
        random.setstate(python)
