"""vLLM's own Step3-VL encoders, 0.12 and newer.

A release's model class is built, filled and finished by its own model loader and called through
its own `embed_multimodal`. Only what no image passes through is replaced: the language model, the
files of a checkpoint, the configuration classes that checkpoints bring along, and, on a CPU, what
the release looks for but does not need (`Vllm.replacements`).

The interface is flat: one tensor of thumbnails, one of patches, one of counts. What stands for "no
patches" in it is the release's own affair, see `VllmEncoder.get_image_feature`. Nothing is
validated, moved or caught on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import torch
from packaging.version import Version
from torch import Tensor

from conformance.adapters import vllm_process as process
from conformance.adapters.engine import installed
from conformance.adapters.flat import flat_request
from conformance.adapters.process import default_dtype, indexed, state_kept
from conformance.protocol import Config, Item, Unavailable

# Earlier releases take every tensor with one more leading dimension.
OLDEST = (0, 12)

_INSTALL = "run `tox -e vllm`, or on a GPU machine `pip install 'vllm>=0.12'`"


def implementation() -> Vllm:
    """The vLLM that is installed here. Cheap: the first build imports it.

    Raises:
        Unavailable: vLLM is not installed, or is older than 0.12.
    """
    version, package = installed("vLLM", _INSTALL)
    if Version(version).release < OLDEST:
        raise Unavailable(f"vLLM {version} is too old to be driven: {_INSTALL}")
    models = package / "model_executor" / "models"
    return Vllm(
        version=version,
        families=tuple(name for name, model in MODELS.items() if model.is_in(models)),
        replaced=process.replacements(package),
    )


@dataclass(frozen=True, kw_only=True)
class Vllm:
    """An installed vLLM.

    Attributes:
        version: the release.
        families: those that the release has a model for; `step3-vl-10b` came with 0.14, `step3p7`
            with 0.27.
        replaced: what is replaced so that vLLM can be imported here.
    """

    version: str
    families: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    name: str = "vllm"
    interface: Literal["batch"] = "batch"

    @property
    def replacements(self) -> tuple[str, ...]:
        """What is not the release's own here."""
        return (
            "language model (empty module)",
            "configuration classes of step3-vl-10b and step3p7 (theirs come with checkpoints)",
            *self.replaced,
        )

    def build(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> VllmEncoder:
        """Build the release's model and load weights into it with the release's model loader.

        The first build imports vLLM and sets the process up for `device`: about 15 seconds.

        Args:
            config: its `to_hf` becomes the `config.json` that the release reads.
            weights: tensors under the published names.
            device: where the model lives. One device per process.
            dtype: of the model.

        Raises:
            Unavailable: vLLM cannot be imported, or this process serves another device.
            Exception: whatever the release raises, unchanged.
        """
        device = indexed(torch.device(device))
        with state_kept(device):
            process.start(self.version, device)
            return VllmEncoder(MODELS[config.family], config, weights, device, dtype)


class VllmEncoder:
    """A model of a release, built and filled.

    Args:
        model: where the release keeps it.
        config: its `to_hf` becomes the `config.json` that the release reads.
        weights: tensors under the published names.
        device: where the model lives.
        dtype: of the model.
    """

    def __init__(
        self,
        model: Model,
        config: Config,
        weights: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._device = device
        self._config = process.engine_config(
            config.to_hf(), model.class_in_release(), device, dtype
        )
        with model.without_language_model(), default_dtype(dtype), device:
            self._model = process.construct(self._config)
        process.load(self._model, weights, self._config, device)
        self._none_for_no_patches = process.patches_may_be_none()

    def reload(self, weights: Mapping[str, Tensor]) -> None:
        """Load other weights of the same shapes with the release's own loader.

        Raises:
            Exception: whatever the loader raises, unchanged; some tensors may be loaded then.
        """
        with state_kept(self._device):
            process.load(self._model, weights, self._config, self._device)

    @torch.no_grad()
    def get_image_feature(self, items: Sequence[Item]) -> Tensor:
        """The rows of a request, `(rows, D)`: the release's one tensor for each image, joined.

        Pixels go through in the dtype and on the device they come in, and so do the counts of a
        single item that are a tensor. Lists become the 1-d tensor that the release is given by
        its own processor. Patch pixels that are absent become what that processor makes of an
        image without patches: nothing where the release declares that there may be none (0.12), a
        tensor of zero rows elsewhere (0.21, 0.33). Patch pixels that are there, be they None or of
        zero rows, go through.

        Args:
            items: the request.

        Raises:
            Exception: whatever vLLM raises, or torch where tensors of several items do not join.
        """
        pixels, patches, counts = flat_request(items)
        absent = all("patch_pixel_values" not in item.model_specific_data for item in items)
        if absent and not self._none_for_no_patches:
            patches = pixels.new_empty(0, *pixels.shape[1:])
        if isinstance(counts, (list, tuple)):
            counts = torch.tensor(counts)
        features = self._model.embed_multimodal(
            pixel_values=pixels, patch_pixel_values=patches, num_patches=counts
        )
        return torch.cat(tuple(features))


@dataclass(frozen=True)
class Model:
    """Where releases keep the model of a family.

    Attributes:
        module: its module in `vllm.model_executor.models`.
        class_name: its class in that module, which is also its architecture.
    """

    module: str
    class_name: str

    def is_in(self, models: Path) -> bool:
        """Whether the folder of a release's models has this one."""
        return (models / f"{self.module}.py").is_file()

    def class_in_release(self) -> type:
        """The release's class."""
        found: type = getattr(
            process.module(f"model_executor.models.{self.module}"), self.class_name
        )
        return found

    def without_language_model(self) -> Any:
        """While it lasts, the release's constructor gets an empty module for a language model."""
        module = process.module(f"model_executor.models.{self.module}")
        return mock.patch.object(module, "init_vllm_registered_model", NoLanguageModel)


MODELS = {
    "step3": Model("step3_vl", "Step3VLForConditionalGeneration"),
    "step3-vl-10b": Model("step_vl", "StepVLForConditionalGeneration"),
    "step3p7": Model("step3p7", "Step3p7ForConditionalGeneration"),
}


class NoLanguageModel(torch.nn.Module):
    """Stands in the place of a language model, with the marks that a constructor looks for."""

    supports_pp = True

    def __init__(self, **_kwargs: Any) -> None:
        super().__init__()

    def make_empty_intermediate_tensors(self) -> None:
        """Nothing: there are no pipeline stages."""

    def forward(self, *, intermediate_tensors: Any = None) -> None:
        """Nothing: it is never called."""
