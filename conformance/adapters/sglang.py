"""sglang's own Step3-VL encoders, 0.4.10 and newer.

A release's model class is built by its own constructor, filled by its own `load_weights` and
called through its own `get_image_feature` with real `MultimodalDataItem`s. Only what no image
passes through is replaced: the language model, and, without a GPU, what sglang imports but cannot
run (`Sglang.replacements`).

The call is translated, never mended: nothing is validated, copied, cast, moved or caught on the
way, and an attribute that a release forgot stays missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal
from unittest import mock

import torch

from conformance.adapters import sglang_process as process
from conformance.adapters.engine import installed
from conformance.adapters.process import default_dtype, indexed, state_kept
from conformance.protocol import Config, Unavailable

# The first release with a Step3-VL model.
OLDEST = (0, 4, 10)

# Up to 0.5.13 `step3_vl` moves patches to the literal "cuda".
FIRST_WITHOUT_LITERAL = (0, 5, 14)

_INSTALL = "run `tox -e sglang`, or on a GPU machine `pip install 'sglang>=0.4.10'`"


def implementation() -> Sglang:
    """The sglang that is installed here. Cheap: the first build imports it.

    Raises:
        Unavailable: sglang is not installed, or is older than 0.4.10.
    """
    version, package = installed("sglang", _INSTALL)
    release = process.release(version)
    if release < OLDEST:
        raise Unavailable(f"sglang {version} is too old to be driven: {_INSTALL}")
    models = package / "srt" / "models"
    return Sglang(
        version=version,
        families=tuple(name for name, model in MODELS.items() if model.is_in(models)),
        replaced=process.replacements(version),
        keeps_patches=release < FIRST_WITHOUT_LITERAL and not torch.cuda.is_available(),
    )


@dataclass(frozen=True, kw_only=True)
class Sglang:
    """An installed sglang.

    Attributes:
        version: the release.
        families: those that the release has a model for; `step3-vl-10b` came with 0.5.9,
            `step3p7` with 0.5.13.
        replaced: what is replaced so that sglang can be imported here.
        keeps_patches: whether `Tensor.to("cuda")` does nothing during a call of `step3`.
    """

    version: str
    families: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    keeps_patches: bool = False
    name: str = "sglang"
    interface: Literal["items"] = "items"

    @property
    def replacements(self) -> tuple[str, ...]:
        """What is not the release's own here; on a GPU the language model alone."""
        return (
            "language model (empty module)",
            *self.replaced,
            *(['Tensor.to("cuda") in step3 (no-op)'] if self.keeps_patches else []),
        )

    def build(
        self,
        config: Config,
        weights: Mapping[str, torch.Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> SglangEncoder:
        """Build the release's model and load weights into it, as its engine does.

        The first build imports sglang and sets the process up for `device`: 10 to 15 seconds.

        Args:
            config: its `to_hf` goes into the release's own configuration class.
            weights: tensors under the published names. As in the release, a missing one keeps
                what the constructor left there, be it uninitialised memory.
            device: where the model lives. One device per process.
            dtype: the default dtype while the constructor runs.

        Raises:
            Unavailable: sglang cannot be imported, or this process serves another device.
            Exception: whatever the constructor or the loader raises, unchanged.
        """
        device = indexed(torch.device(device))
        with state_kept(device):
            process.start(self.version, device, dtype)
            with default_dtype(dtype), device:
                model = MODELS[config.family].construct(config.to_hf())
            encoder = SglangEncoder(
                model.eval(), keep_patches=self.keeps_patches and config.family == "step3"
            )
            encoder.reload(weights)
        return encoder


class SglangEncoder:
    """A model of a release, built and filled.

    Attributes:
        model: the release's own module.
    """

    def __init__(self, model: Any, *, keep_patches: bool = False) -> None:
        self.model = model
        self._around_call = patches_kept if keep_patches else contextlib.nullcontext

    def reload(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Load other weights of the same shapes with the release's own loader.

        A tensor that is missing in `weights` keeps the value it had, unnoticed. To see what the
        release does without a tensor, build.

        Raises:
            Exception: whatever the loader raises, unchanged; some tensors may be loaded then.
        """
        self.model.load_weights(weights.items())

    def get_image_feature(self, items: Sequence[Any]) -> torch.Tensor:
        """Call the release's `get_image_feature` with gradients off, as its engine does.

        Each item becomes a `MultimodalDataItem` that holds the caller's own feature tensor and
        the caller's own `model_specific_data` dict. Neither is copied: what the release does to
        them, the caller sees.

        Returns:
            What the release returns.

        Raises:
            Exception: whatever the release raises, unchanged.
        """
        requests = [_request(item) for item in items]
        with torch.no_grad(), self._around_call():
            features: torch.Tensor = self.model.get_image_feature(requests)
        return features


def _request(item: Any) -> Any:
    batch = process.module("managers.schedule_batch")
    return batch.MultimodalDataItem(
        modality=batch.Modality.IMAGE,
        feature=item.feature,
        model_specific_data=item.model_specific_data,
    )


def patches_kept() -> Any:
    """While it lasts, a tensor stays where it is when it is sent to "cuda".

    Without it a release up to 0.5.13 would show nothing of `step3` with patches but the error
    that there is no GPU.
    """
    send = torch.Tensor.to

    def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return tensor if args == ("cuda",) else send(tensor, *args, **kwargs)

    return mock.patch.object(torch.Tensor, "to", to)


@dataclass(frozen=True)
class Model:
    """Where releases keep the model of a family.

    Attributes:
        module: its module in `sglang.srt.models`.
        class_name: its class in that module.
        text_parts: what the constructor makes the language model of, by its names there.
    """

    module: str
    class_name: str
    text_parts: tuple[str, ...]

    def is_in(self, models: Path) -> bool:
        """Whether the folder of a release's models has this one."""
        return (models / f"{self.module}.py").is_file()

    def construct(self, hf: Mapping[str, Any]) -> Any:
        """Run the release's constructor with nothing in the place of the language model."""
        module = process.module(f"models.{self.module}")
        nothing: dict[str, Any] = dict.fromkeys(self.text_parts, NoLanguageModel)
        with mock.patch.multiple(module, **nothing):
            return getattr(module, self.class_name)(_configuration(self.module, hf))


MODELS = {
    "step3": Model(
        "step3_vl",
        "Step3VLForConditionalGeneration",
        ("Step3TextModel", "ParallelLMHead", "LogitsProcessor"),
    ),
    "step3-vl-10b": Model("step3_vl_10b", "StepVLForConditionalGeneration", ("Qwen3ForCausalLM",)),
    "step3p7": Model("step3p7", "Step3p7ForConditionalGeneration", ("Step3p5ForCausalLM",)),
}


def _configuration(module: str, hf: Mapping[str, Any]) -> Any:
    """What the release's model reads a published `config.json` from."""
    if module == "step3_vl":
        return process.module("configs.step3_vl").Step3VLConfig(**hf)
    if module == "step3p7":
        return process.module("configs.step3p7").Step3p7Config(**hf)
    # The 10B model's configuration class comes with its checkpoint; only attributes are read.
    parts = {part: SimpleNamespace(**hf[part]) for part in ("vision_config", "text_config")}
    return SimpleNamespace(**{**hf, **parts})


class NoLanguageModel(torch.nn.Module):
    """Stands in the place of a language model, its head or its logits processor."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()

    def load_weights(self, weights: Any) -> None:
        """Pass over unknown names, as Qwen3ForCausalLM and Step3p5ForCausalLM of 0.5.23 do."""
