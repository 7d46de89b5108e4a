"""What sglang needs once in a process before it can build a model.

An engine starts its processes this way, too: environment, imports, published server arguments, a
process group (here of one). Without a GPU, stand-ins come before the imports.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from packaging.version import Version

from conformance.adapters import import_stubs, torchvision_schemas
from conformance.adapters.process import make_group_of_one
from conformance.protocol import Unavailable

# What releases import and only GPUs have, each with the first release that does without it.
GPU_ONLY = {
    "triton": (sys.maxsize,),
    "sgl_kernel": (0, 5, 11),
    "vllm.model_executor.layers.activation": (0, 5, 9),
    "vllm.model_executor.layers.layernorm": (0, 5, 9),
    "vllm._custom_ops": (0, 5),
}

# Up to 0.4.10 sglang asks torch for the processor's matrix tiles under a name that is gone.
FIRST_WITHOUT_TILES = (0, 5)
TILES = "_is_amx_tile_supported"

# Earlier releases look the model of server arguments up on the hub, be it "dummy".
FIRST_WITH_DUMMY = (0, 5, 6)

# What `layers.dp_attention` has up to 0.5.6, which make attention ranks a group of their own.
ATTENTION_SIZE = "_ATTN_TP_SIZE"

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
    tiles = f"torch._C._cpu.{TILES} (answers False)"
    return (
        *([schemas] if torchvision_schemas.needed() else []),
        *(f"{module} (stand-in, kernels raise)" for module in _stand_ins(version)),
        *([tiles] if release(version) < FIRST_WITHOUT_TILES else []),
    )


def _stand_ins(version: str) -> tuple[str, ...]:
    return import_stubs.missing(
        name for name, without in GPU_ONLY.items() if release(version) < without
    )


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
        _publish(version, device, dtype)
        _make_group_of_one(device)
        if hasattr(module("layers.dp_attention"), ATTENTION_SIZE):
            _make_attention_group(_server_args(version, device, None))
        _served = device
    elif _served != device:
        raise Unavailable(
            f"sglang serves one device per process, here {_served}: run {device} in another process"
        )
    else:
        _publish(version, device, dtype)


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
        if release(version) < FIRST_WITHOUT_TILES:
            setattr(torch._C._cpu, TILES, lambda: False)
    try:
        module("models.step3_vl")
    except Exception as error:
        # A package that is missing or of another version can raise anything.
        raise Unavailable(
            f"sglang {version} cannot be imported ({type(error).__name__}: {error}): "
            "run `tox -e sglang`, or install the packages that it needs"
        ) from error


def _publish(version: str, device: torch.device, dtype: torch.dtype) -> None:
    """Publish server arguments, unless the published ones serve.

    The engine's own attention kernels for GPUs know half precision only.
    """
    global _attention
    half = dtype in (torch.float16, torch.bfloat16)
    attention = "auto" if device.type == "cuda" and half else "sdpa"
    if attention == _attention:
        return
    arguments = _server_args(version, device, None if attention == "auto" else attention)
    server_args = module("server_args")
    if _places_ranks():
        context = module("runtime_context")
        ranks = context.SpawnRanks(world_rank=0, gpu_id=device.index)
        context.publish(arguments, role="scheduler", ranks=ranks)
    elif hasattr(server_args, "set_global_server_args_for_scheduler"):
        server_args.set_global_server_args_for_scheduler(arguments)
    else:
        published = module("managers.schedule_batch").global_server_args_dict
        published.update({name: getattr(arguments, name) for name in published})
    _attention = attention


def _server_args(version: str, device: torch.device, attention: str | None) -> Any:
    """Server arguments for a model that is on no hub; the path "dummy" says so."""
    server_args = module("server_args").ServerArgs
    defaults_only = (
        mock.patch.object(server_args, "__post_init__")
        if release(version) < FIRST_WITH_DUMMY
        else contextlib.nullcontext()
    )
    with defaults_only:
        return server_args(model_path="dummy", device=device.type, mm_attention_backend=attention)


def _places_ranks() -> bool:
    """Whether the release wants to be told which rank this process is (0.5.23 does)."""
    try:
        return hasattr(module("runtime_context"), "SpawnRanks")
    except ModuleNotFoundError:
        return False


def _make_group_of_one(device: torch.device) -> None:
    """Make the process groups that parallel layers ask for."""
    parallel_state = module("distributed.parallel_state")
    backend = make_group_of_one(device)
    parallel_state.init_distributed_environment(
        world_size=1, rank=0, local_rank=device.index or 0, backend=backend
    )
    parallel_state.initialize_model_parallel(backend=backend)


def _make_attention_group(server_args: Any) -> None:
    """Make the group of attention ranks: one rank, with no data parallelism."""
    initialize = module("layers.dp_attention").initialize_dp_attention
    if "model_config" in inspect.signature(initialize).parameters:
        # Read for the size of buffers that data parallelism alone has.
        language_model = SimpleNamespace(hidden_size=1, dtype=torch.float32)
        initialize(server_args, language_model)
    else:
        initialize(
            enable_dp_attention=False,
            tp_rank=0,
            tp_size=1,
            dp_size=1,
            moe_dense_tp_size=None,
            pp_size=1,
        )
