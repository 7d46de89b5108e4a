"""What sglang needs once in a process before it can build a model.

An engine starts its processes this way, too: environment, imports, published server arguments, a
process group (here of one). Without a GPU, stand-ins come before the imports.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from packaging.version import Version

from conformance.adapters import import_stubs, torchvision_schemas
from conformance.protocol import Unavailable

# From this release on sglang does without sgl_kernel where there is no GPU.
FIRST_WITHOUT_SGL_KERNEL = (0, 5, 11)

_served: torch.device | None = None
_attention: str | None = None


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version; an untagged source checkout, 0.0.0, is newer than any release."""
    numbers = Version(version).release
    return numbers if any(numbers) else (sys.maxsize,)


def replacements(version: str) -> tuple[str, ...]:
    """What is replaced so that sglang can be imported here; nothing if there is a GPU."""
    if torch.cuda.is_available():
        return ()
    schemas = "torchvision operator schemas (declared, no kernels)"
    return (
        *([schemas] if torchvision_schemas.needed() else []),
        *(f"{package} (stand-in, kernels raise)" for package in _stand_ins(version)),
    )


def _stand_ins(version: str) -> tuple[str, ...]:
    needs_kernels = release(version) < FIRST_WITHOUT_SGL_KERNEL
    return import_stubs.missing(("triton", "sgl_kernel") if needs_kernels else ("triton",))


def indexed(device: torch.device) -> torch.device:
    """The same device with the index that torch would choose."""
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def module(name: str) -> Any:
    """A module of the installed release, by its name below `sglang.srt`."""
    return importlib.import_module(f"sglang.srt.{name}")


def start(version: str, device: torch.device, dtype: torch.dtype) -> None:
    """Prepare this process for models on a device; after the first time this is cheap.

    Args:
        version: the installed release.
        device: with an index if it is a GPU.
        dtype: of the next model.

    Raises:
        Unavailable: sglang cannot be imported, or the process serves another device.
    """
    global _served
    if _served is None:
        _prepare_environment(device)
        _import(version)
        _publish(device, dtype)
        _make_group_of_one(device)
        _served = device
    elif _served != device:
        raise Unavailable(
            f"sglang serves one device per process, here {_served}: run {device} in another process"
        )
    else:
        _publish(device, dtype)


def _prepare_environment(device: torch.device) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
    if device.type == "cpu":
        # Asks for the CPU build of sgl_kernel, which PyPI does not have; unset, sglang takes its
        # plain torch paths.
        os.environ.pop("SGLANG_USE_CPU_ENGINE", None)
        if "OMP_NUM_THREADS" not in os.environ:
            # A second thread makes a call of a tiny model ten times slower (30 ms for 3 ms).
            torch.set_num_threads(1)


def _import(version: str) -> None:
    if not torch.cuda.is_available():
        torchvision_schemas.declare()
        import_stubs.stand_in(_stand_ins(version))
    try:
        module("models.step3_vl_10b")
    except Exception as error:
        # A package that is missing or of another version can raise anything.
        raise Unavailable(
            f"sglang {version} cannot be imported ({type(error).__name__}: {error}): "
            "run `tox -e sglang`, or install the packages that it needs"
        ) from error


def _publish(device: torch.device, dtype: torch.dtype) -> None:
    """Publish server arguments, unless the published ones serve.

    The engine's own attention kernels for GPUs know half precision only.
    """
    global _attention
    half = dtype in (torch.float16, torch.bfloat16)
    attention = "auto" if device.type == "cuda" and half else "sdpa"
    if attention == _attention:
        return
    server_args = module("server_args")
    # The path "dummy" keeps the arguments from being checked against a model on the hub.
    arguments = server_args.ServerArgs(
        model_path="dummy",
        device=device.type,
        mm_attention_backend=None if attention == "auto" else attention,
    )
    if _places_ranks():
        context = module("runtime_context")
        ranks = context.SpawnRanks(world_rank=0, gpu_id=device.index)
        context.publish(arguments, role="scheduler", ranks=ranks)
    else:
        server_args.set_global_server_args_for_scheduler(arguments)
    _attention = attention


def _places_ranks() -> bool:
    """Whether the release wants to be told which rank this process is (0.5.23 does)."""
    try:
        return hasattr(module("runtime_context"), "SpawnRanks")
    except ModuleNotFoundError:
        return False


def _make_group_of_one(device: torch.device) -> None:
    """Make the process groups that parallel layers ask for.

    The store lives in memory, so that processes side by side share neither a file nor a port.
    """
    parallel_state = module("distributed.parallel_state")
    backend = "nccl" if device.type == "cuda" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()  # type: ignore[attr-defined]
        torch.distributed.init_process_group(backend, store=store, rank=0, world_size=1)
        atexit.register(_destroy_groups)
    parallel_state.init_distributed_environment(
        world_size=1, rank=0, local_rank=device.index or 0, backend=backend
    )
    parallel_state.initialize_model_parallel(backend=backend)


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

    Importing sglang draws from `random`, warns about the GPU that is not there and changes warning
    filters; constructors draw initial weights from torch's generators.
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
