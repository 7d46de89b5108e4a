"""The corpus: frozen sharp cases, small and known to show faults, judged before any other.

They do not depend on what a release of Hypothesis draws. One file a family holds them: items as in
a saved case, weights by how they were drawn, with their digest. `python -m conformance corpus`
chooses them anew.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from reference import REGIMES, EncoderConfig, ImageItem
from strategies import Case, Placement, Weights
from strategies.cases import WEIGHT_SEEDS
from strategies.encoding import Encoded, decode

FOLDER = "corpus"


@dataclass(frozen=True)
class Sharp:
    """A case, in float32, and the check that it is for."""

    check: str
    case: Case


def sharp_cases(check: str, family: str, dtype: torch.dtype) -> tuple[Case, ...]:
    """The sharp cases of a check for a family, in a dtype.

    Pixels of the model's dtype are cast with it; a case whose pixels have another dtype on purpose
    is for float32 models alone.
    """
    cases = (sharp.case for sharp in _corpus(family) if sharp.check == check)
    cast = (_cast(case, dtype) for case in cases)
    return tuple(case for case in cast if case is not None)


def write_corpus(found: Iterable[Sharp], file: Path) -> None:
    """Write the sharp cases of one family.

    Raises:
        ValueError: the weights of a case are not a regime's.
    """
    tensors: dict[str, Tensor] = {}
    entries = []
    for index, sharp in enumerate(found):
        encoded = sharp.case.encoded
        tensors |= {f"{index}/{name}": tensor for name, tensor in encoded.tensors.items()}
        entries.append(
            {"check": sharp.check, "case": encoded.header, "weights": _recipe(sharp.case)}
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, file, metadata={"entries": json.dumps(entries)})


@functools.cache
def _corpus(family: str) -> tuple[Sharp, ...]:
    file = resources.files("conformance").joinpath(FOLDER, f"{family}.safetensors")
    if not file.is_file():
        return ()
    with resources.as_file(file) as path, safe_open(path, framework="pt") as opened:
        entries = json.loads(opened.metadata()["entries"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    return tuple(_sharp(entry, tensors, f"{index}/") for index, entry in enumerate(entries))


def _sharp(entry: Mapping[str, Any], tensors: Mapping[str, Tensor], prefix: str) -> Sharp:
    own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    value = decode(Encoded(entry["case"], own))
    config = EncoderConfig(**value["config"])
    recipe = entry["weights"]
    weights = Weights.drawn(config, recipe["seed"], recipe["regime"])
    if weights.digest != recipe["digest"]:
        raise ValueError(f"the corpus is stale: {recipe['regime']} draws other weights now")
    items = tuple(ImageItem(**item) for item in value["items"])
    return Sharp(
        entry["check"], Case(config, weights, items, placement=Placement(**value["placement"]))
    )


def _recipe(case: Case) -> dict[str, Any]:
    for regime in REGIMES:
        for seed in range(WEIGHT_SEEDS):
            drawn = Weights.drawn(case.config, seed, regime)
            if drawn == case.weights:
                return {"regime": regime, "seed": seed, "digest": drawn.digest}
    raise ValueError(f"{case!r} has weights that no regime draws")


def _cast(case: Case, dtype: torch.dtype) -> Case | None:
    if dtype == case.dtype:
        return case
    pixels = [item.feature for item in case.items]
    pixels += [item.model_specific_data.get("patch_pixel_values") for item in case.items]  # type: ignore[misc]
    if any(isinstance(p, Tensor) and p.dtype != case.dtype for p in pixels):
        return None
    items = tuple(_item(item, dtype) for item in case.items)
    return case.replace(items=items, dtype=dtype)


def _item(item: ImageItem, dtype: torch.dtype) -> ImageItem:
    data = dict(item.model_specific_data)
    patches = data.get("patch_pixel_values")
    if isinstance(patches, Tensor):
        data["patch_pixel_values"] = patches.to(dtype)
    return ImageItem(item.feature.to(dtype), data)
