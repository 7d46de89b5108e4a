"""The Step3.7 encoder of mlx-vlm (`mlx_vlm.models.step3p7`), on MLX's CPU build or on a GPU.

The release's own constructor, name conversion, strict loading and `_vision_embeddings`; only the
language model is replaced, which no picture meets. Tensors cross to MLX and back by value. Nothing
is checked on its behalf: MLX does not look for indices out of bounds, and neither does this.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from conformance.adapters.engine import imported, installed
from conformance.adapters.flat import flat_request
from conformance.adapters.process import state_kept
from conformance.protocol import Config, Interface, Item, Unavailable

_INSTALL = "run `tox -e mlx_vlm`, or `pip install 'mlx[cpu]' mlx-vlm` (on a Mac without `[cpu]`)"

# The dtypes of models, as MLX calls them.
DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


def implementation() -> MlxVlm:
    """The installed mlx-vlm, without importing it.

    Raises:
        Unavailable: mlx-vlm or MLX is not installed, or too old for Step3.7.
    """
    version, package = installed("mlx-vlm", _INSTALL)
    if importlib.util.find_spec("mlx") is None:
        raise Unavailable(f"mlx-vlm is installed, but MLX is not: {_INSTALL}")
    if not (package / "models" / "step3p7").is_dir():
        raise Unavailable(f"mlx-vlm {version} has no models.step3p7: {_INSTALL}")
    return MlxVlm(version)


class MlxVlm:
    """mlx-vlm as an implementation under test.

    Args:
        version: the installed release.
    """

    name: str = "mlx_vlm"
    families: Collection[str] = ("step3p7",)
    interface: Interface = "batch"
    replacements: tuple[str, ...] = (
        "language model (empty module)",
        "compiled functions (MLX_DISABLE_COMPILE=1)",
    )

    def __init__(self, version: str) -> None:
        self.version = version

    def build(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> MlxVlmEncoder:
        """Build the release's model and load weights into it.

        The first build imports mlx-vlm, which takes about 5 seconds and changes transformers'
        AutoProcessor.

        Args:
            config: its `to_hf` goes into the release's own configuration class.
            weights: tensors under the published names; they are copied.
            device: `cpu`, or any other for MLX's GPU.
            dtype: of the parameters.

        Raises:
            Unavailable: mlx-vlm does not import, or MLX lacks the device or the dtype.
            Exception: whatever the release raises, such as its ValueError for a tensor that is
                missing, unknown or of the wrong shape.
        """
        if dtype not in DTYPES:
            raise Unavailable(f"mlx-vlm has no models in {dtype}: use {', '.join(DTYPES.values())}")
        with state_kept(torch.device("cpu")):
            _use(device)
            return MlxVlmEncoder(config, weights, device, dtype)


class MlxVlmEncoder:
    """`Model._vision_embeddings` for a list of items.

    Args:
        config: its `to_hf` goes into the release's own configuration class.
        weights: tensors under the published names; they are copied.
        device: where results go.
        dtype: of the parameters.
    """

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._device, self._dtype = device, dtype
        module = _module("mlx_vlm.models.step3p7.step3p7")
        read = _module("mlx_vlm.models.step3p7.config").ModelConfig.from_dict(config.to_hf())
        with mock.patch.object(module, "LanguageModel", _emptied(module.LanguageModel)):
            self._model = module.Model(read)
        self.reload(weights)

    def reload(self, weights: Mapping[str, Tensor]) -> None:
        """Take other weights through the release's own conversion and strict loading.

        Args:
            weights: tensors under the published names; they are copied.

        Raises:
            Exception: as `MlxVlm.build`.
        """
        published = {name: _to_mlx(tensor, self._dtype) for name, tensor in weights.items()}
        self._model.load_weights(list(self._model.sanitize(published).items()), strict=True)
        self._model.eval()

    def get_image_feature(self, items: Sequence[Item]) -> Tensor:
        """The rows of a request, `(rows, D)`, joined as the release joins them.

        Tensors cross in the dtype they come in; MLX's own arrays are made of them, and float64,
        which they do not keep, becomes float32. Lists of counts go through.

        Args:
            items: the request.

        Raises:
            Exception: whatever mlx-vlm raises, or torch where tensors of several items do not
                join.
        """
        pixels, patches, counts = (
            _to_mlx(value) if isinstance(value, Tensor) else value for value in flat_request(items)
        )
        features = self._model._vision_embeddings(
            pixel_values=pixels, patch_pixel_values=patches, num_patches=counts
        )
        return _to_torch(_module("mlx.core").concatenate(features, axis=0)).to(self._device)


def _emptied(language_model: Any) -> Callable[..., Any]:
    """A language model without parameters, which keeps the release's conversion of names."""

    class NoLanguageModel(_module("mlx.nn").Module):  # type: ignore[misc]
        sanitize = language_model.sanitize

    return lambda *_: NoLanguageModel()


def _use(device: torch.device) -> None:
    """Let MLX compute on a device: the CPU, or its own GPU for any other."""
    mlx = _module("mlx.core")
    wanted = mlx.cpu if device.type == "cpu" else mlx.gpu
    if not mlx.is_available(wanted):
        raise Unavailable(f"MLX has no GPU here to stand for {device}: use --device=cpu")
    mlx.set_default_device(wanted)


def _to_mlx(tensor: Tensor, dtype: torch.dtype | None = None) -> Any:
    """An array of the same values; bfloat16, which NumPy lacks, crosses as float32."""
    mlx = _module("mlx.core")
    detour = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    array = mlx.array(detour.detach().cpu().numpy())
    name = DTYPES.get(dtype or tensor.dtype)
    return array if name is None else array.astype(getattr(mlx, name))


def _to_torch(array: Any) -> Tensor:
    mlx, numpy = _module("mlx.core"), _module("numpy")
    dtypes = {getattr(mlx, name): dtype for dtype, name in DTYPES.items()}
    detour = array.astype(mlx.float32) if array.dtype == mlx.bfloat16 else array
    return torch.from_numpy(numpy.array(detour)).to(dtypes[array.dtype])


def _module(name: str) -> Any:
    """A module of mlx-vlm or MLX, imported late."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    # Compiled, an activation would call a C++ compiler.
    os.environ["MLX_DISABLE_COMPILE"] = "1"
    return imported("mlx-vlm", name)
