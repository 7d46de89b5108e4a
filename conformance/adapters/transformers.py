"""The Step3.7 encoder of transformers (`transformers.models.step3p7`), 5.16.0 and later.

Everything between the published names and the result is transformers' own: it reads the published
`config.json`, converts the checkpoint (splits `in_proj`, permutes queries and keys for half-split
rotary) and merges patches and thumbnails. Nothing is checked on its behalf: where it ignores a
field of the configuration, or leaves a missing tensor at random values and says so in a log, that
is what the suite sees.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from conformance.adapters.engine import imported, installed
from conformance.adapters.flat import flat_request
from conformance.protocol import Config, Interface, Item, Unavailable

_INSTALL = "pip install 'transformers>=5.16'"

# Without layers the language model is an embedding of one row and a norm, which no picture meets.
_NO_LANGUAGE_MODEL = {"num_hidden_layers": 0, "vocab_size": 1, "pad_token_id": 0}


def implementation() -> Transformers:
    """The installed transformers, without importing it.

    Raises:
        Unavailable: transformers is not installed, or too old for Step3.7.
    """
    version, package = installed("transformers", _INSTALL)
    if not (package / "models" / "step3p7").is_dir():
        raise Unavailable(f"transformers {version} has no models.step3p7: {_INSTALL}")
    return Transformers(version)


class Transformers:
    """transformers as an implementation under test.

    Args:
        version: the installed release.
    """

    name: str = "transformers"
    families: Collection[str] = ("step3p7",)
    interface: Interface = "batch"
    replacements: tuple[str, ...] = ("language model (no layers)",)

    def __init__(self, version: str) -> None:
        self.version = version

    def build(
        self,
        config: Config,
        weights: Mapping[str, Tensor],
        *,
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> TransformersEncoder:
        """Read the published configuration and load the weights, as `from_pretrained` does.

        Args:
            config: `config.to_hf()` is the published `config.json`.
            weights: tensors under the published names; they are copied.
            device: where the encoder computes.
            dtype: its parameters' dtype.

        Raises:
            Unavailable: transformers does not import.
            Exception: whatever transformers raises, such as its RuntimeError for a tensor of the
                wrong shape. Missing and unknown tensors raise nothing there, so nothing here.
        """
        with _undisturbed():
            return TransformersEncoder(_read(config), weights, device, dtype)


class TransformersEncoder:
    """`Step3p7Model.get_image_features` for a list of items.

    Args:
        config: a `Step3p7Config`.
        weights: tensors under the published names; they are copied.
        device: where the encoder computes.
        dtype: its parameters' dtype.
    """

    def __init__(
        self,
        config: Any,
        weights: Mapping[str, Tensor],
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> None:
        self._config, self._device, self._dtype = config, device, dtype
        self._load(weights)

    def reload(self, weights: Mapping[str, Tensor]) -> None:
        """Take other weights, through the same conversion that loaded the first ones.

        Args:
            weights: tensors under the published names; they are copied. Other names or shapes
                than before rebuild the model.

        Raises:
            Exception: as `Transformers.build`.
        """
        with _undisturbed():
            load = self._convert if _shapes(weights) == self._shapes else self._load
            load(weights)

    @torch.no_grad()
    def get_image_feature(self, items: Sequence[Item]) -> Tensor:
        """The rows of a request, `(rows, D)`, joined as `Step3p7Model.forward` joins them.

        Pixels are handed over in the dtype and on the device they come in.

        Args:
            items: the request.

        Raises:
            Exception: whatever transformers raises, or torch where tensors of several items do
                not join.
        """
        pixels, patches, counts = flat_request(items)
        features = self._model.get_image_features(pixels, patches, counts).pooler_output
        return torch.cat(features, dim=0)

    def _load(self, weights: Mapping[str, Tensor]) -> None:
        model_class = _module("models.step3p7.modeling_step3p7").Step3p7Model
        model = model_class.from_pretrained(
            None,
            config=self._config,
            state_dict=_copies(weights),
            dtype=self._dtype,
            attn_implementation="eager",
        )
        self._model, self._shapes = model.to(self._device), _shapes(weights)

    def _convert(self, weights: Mapping[str, Tensor]) -> None:
        """Load into the model that is there: the part of `from_pretrained` that reads weights.

        A third of its time. The parts left out (constructor, random values for missing tensors,
        report) depend on names and shapes alone, and these are as before.
        """
        mapping = _module("conversion_mapping").get_model_conversion_mapping(self._model)
        load_config = _module("modeling_utils").LoadStateDictConfig(
            dtype=self._dtype, weight_mapping=mapping
        )
        _module("core_model_loading").convert_and_load_state_dict_in_model(
            model=self._model, state_dict=_copies(weights), load_config=load_config
        )
        self._model.to(self._device)


def _read(config: Config) -> Any:
    """The published configuration as transformers reads it, with an empty language model."""
    published = config.to_hf()
    text = {**published["text_config"], **_NO_LANGUAGE_MODEL}
    config_class = _module("models.step3p7.configuration_step3p7").Step3p7Config
    return config_class.from_dict({**published, "text_config": text})


def _copies(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights in memory of their own: the model keeps the very tensors it is given."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in weights.items()}


def _module(name: str) -> Any:
    """A module of transformers, imported late: the model takes seconds."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    return imported("transformers", f"transformers.{name}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave the process as found.

    transformers draws random values for tensors that are missing (the language model's, always),
    logs a report and shows a progress bar; its imports may warn, and the suite turns warnings
    into errors.
    """
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        logging = _module("utils.logging")
        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()
