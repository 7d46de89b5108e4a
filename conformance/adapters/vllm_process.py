"""What vLLM needs once in a process, and for each model, before it can build one.

An engine starts its workers this way, too: environment, platform, configuration, a process group
(here of one), model loader.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from conformance.adapters import torchvision_schemas
from conformance.adapters.process import make_group_of_one
from conformance.protocol import Unavailable

# Read by the constructor of quick_gelu, which runs as plain torch where there is no kernel.
GELU = "_C::gelu_quick"
GELU_ARGUMENTS = "(Tensor! out, Tensor input) -> ()"

# What the engine's checks of a configuration ask of a language model, which is never built.
_TEXT = {"num_attention_heads": 1, "num_hidden_layers": 1}
_STEP3_TEXT = {
    **_TEXT,
    "model_type": "step3_text",
    "architectures": ["Step3TextForCausalLM"],
    "num_attention_groups": 1,
}
_QWEN3_TEXT = {
    **_TEXT,
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "num_key_value_heads": 1,
}

_served: torch.device | None = None


def replacements(package: Path) -> tuple[str, ...]:
    """What is replaced so that the vLLM in a folder can run here; nothing if there is a GPU."""
    if torch.cuda.is_available():
        return ()
    schemas = "torchvision operator schemas (declared, no kernels)"
    return (
        "platform detection (CpuPlatform)",
        "kernels (the release's own plain torch, custom_ops=none)",
        *([schemas] if torchvision_schemas.needed() else []),
        *([] if any(package.glob("_C*.so")) else [f"schema of {GELU} (declared, no kernel)"]),
    )


def module(name: str) -> Any:
    """A module of the installed release, by its name below `vllm`."""
    return importlib.import_module(f"vllm.{name}")


def start(version: str, device: torch.device) -> None:
    """Prepare this process for models on a device; after the first time this is cheap.

    Args:
        version: the installed release.
        device: with an index if it is a GPU.

    Raises:
        Unavailable: vLLM cannot be imported, or the process serves another device.
    """
    global _served
    if _served is None:
        _prepare_environment(device)
        _import(version, device)
        _make_group_of_one(device)
        _served = device
    elif _served != device:
        raise Unavailable(
            f"vLLM serves one device per process, here {_served}: run {device} in another process"
        )


def _prepare_environment(device: torch.device) -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_CONFIGURE_LOGGING", "0")
    if device.type == "cpu":
        os.environ["VLLM_TARGET_DEVICE"] = "cpu"


def _import(version: str, device: torch.device) -> None:
    torchvision_schemas.declare()
    try:
        if device.type == "cpu":
            platform = module("platforms.cpu").CpuPlatform()
            module("platforms")._current_platform = platform
        module("model_executor.models.step3_vl")
    except Exception as error:
        # A package that is missing or of another version can raise anything.
        raise Unavailable(
            f"vLLM {version} cannot be imported ({type(error).__name__}: {error}): "
            "run `tox -e vllm`, or install the packages that it needs"
        ) from error
    if not hasattr(torch.ops._C, "gelu_quick"):
        torch.library.define(GELU, GELU_ARGUMENTS)


def _make_group_of_one(device: torch.device) -> None:
    """Make the process groups that parallel layers ask for."""
    backend = make_group_of_one(device)
    config = module("config")
    with config.set_current_vllm_config(config.VllmConfig()):
        distributed = module("distributed")
        distributed.init_distributed_environment(
            world_size=1, rank=0, local_rank=device.index or 0, backend=backend
        )
        distributed.initialize_model_parallel()


def engine_config(
    hf: Mapping[str, Any], model_class: type, device: torch.device, dtype: torch.dtype
) -> Any:
    """The engine's own configuration of a model.

    Args:
        hf: the published `config.json`; its language model gets what the engine's checks ask for.
        model_class: the release's class for its architecture.
        device: where the model lives.
        dtype: of the model.
    """
    (architecture,) = hf["architectures"]
    module("model_executor.models.registry").ModelRegistry.register_model(architecture, model_class)
    half = dtype in (torch.float16, torch.bfloat16)  # all that attention kernels of a GPU know
    in_release = hf["model_type"] == "step3_vl"
    text = {**(_STEP3_TEXT if in_release else _QWEN3_TEXT), **hf["text_config"]}
    if not in_release:
        _register_configuration(hf["model_type"])
    config = module("config")
    with tempfile.TemporaryDirectory() as folder:
        # A file that names its dtype keeps old releases from looking for it on the hub.
        names_dtype = {"torch_dtype": str(dtype).removeprefix("torch.")}
        published = {**hf, "text_config": text, "image_token_id": 0, **names_dtype}
        Path(folder, "config.json").write_text(json.dumps(published), encoding="utf-8")
        model = config.ModelConfig(
            model=folder,
            tokenizer=folder,
            skip_tokenizer_init=True,
            dtype=dtype,
            enforce_eager=True,
            max_model_len=128,
            mm_encoder_attn_backend=None if half else "TORCH_SDPA",
        )
    # Without a GPU there are no kernels; to 0.12 the engine asks for them even so.
    kernels = {} if device.type == "cuda" else {"custom_ops": ["none"]}
    return config.VllmConfig(
        model_config=model,
        device_config=config.DeviceConfig(device=device.type),
        compilation_config=config.CompilationConfig(**kernels),
    )


def _register_configuration(model_type: str) -> None:
    """Register a class for a `config.json` whose own class comes with the checkpoint.

    It holds what the file says, as attributes.
    """
    transformers: Any = importlib.import_module("transformers")

    class Configuration(transformers.PretrainedConfig):  # type: ignore[misc]
        def __init__(self, vision_config: Any = None, text_config: Any = None, **rest: Any) -> None:
            self.vision_config = transformers.PretrainedConfig(**(vision_config or {}))
            self.text_config = transformers.AutoConfig.for_model(**(text_config or _QWEN3_TEXT))
            super().__init__(**rest)

    Configuration.model_type = model_type
    transformers.AutoConfig.register(model_type, Configuration, exist_ok=True)


def construct(config: Any) -> Any:
    """The release's model of an architecture, built by its own constructor, not filled."""
    loading = module("model_executor.model_loader.utils")
    model = loading.initialize_model(vllm_config=config, model_config=config.model_config)
    return model.eval().requires_grad_(False)


def load(model: Any, weights: Mapping[str, Tensor], config: Any, device: torch.device) -> None:
    """Load weights with the engine's own loader, which would read a checkpoint's files."""
    loaders = module("model_executor.model_loader.default_loader")
    loader = loaders.DefaultModelLoader(config.load_config)
    with (
        module("config").set_current_vllm_config(config),
        mock.patch.object(loader, "get_all_weights", return_value=iter(weights.items())),
    ):
        loader.load_weights(model, config.model_config)
        loading = module("model_executor.model_loader.utils")
        loading.process_weights_after_loading(model, config.model_config, device)


def patches_may_be_none() -> bool:
    """Whether the release's own declaration of its input has room for no patches at all."""
    inputs = module("model_executor.models.step3_vl").Step3VLImagePixelInputs
    return type(None) in typing.get_args(typing.get_type_hints(inputs)["patch_pixel_values"])
