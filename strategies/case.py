"""A case: everything that decides what an encoder must answer."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from reference import EncoderConfig, ImageItem, init_weights, read_counts
from strategies.encoding import Encoded, encode

Place = Literal["model", "cpu"]


class Weights(Mapping[str, Tensor]):
    """Vision tensors under their published names, not to be written to; equal by content.

    Attributes:
        label: where they come from, for people.
    """

    def __init__(self, tensors: Mapping[str, Tensor], label: str = "given") -> None:
        self._tensors = dict(tensors)
        self.label = label

    @classmethod
    def drawn(cls, config: EncoderConfig, seed: int, regime: str = "balanced") -> Weights:
        """The tensors of `reference.init_weights`, made once."""
        return _drawn(config, seed, regime)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"Weights({self.label})"

    @functools.cached_property
    def digest(self) -> str:
        """A hash of names, shapes, dtypes and values."""
        return encode(dict(sorted(self._tensors.items()))).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Weights) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def replace(self, changes: Mapping[str, Tensor], label: str) -> Weights:
        """The same tensors with some replaced or added."""
        return Weights({**self._tensors, **changes}, f"{self.label}, {label}")


@functools.lru_cache(maxsize=256)
def _drawn(config: EncoderConfig, seed: int, regime: str) -> Weights:
    return Weights(init_weights(config, seed, regime=regime), f"{regime}, seed {seed}")


@dataclass(frozen=True)
class Image:
    """One picture of a request.

    Attributes:
        thumbnail: `(3, H, W)`.
        patches: `(count, 3, h, w)`, or None for none.
    """

    thumbnail: Tensor
    patches: Tensor | None = None

    @property
    def count(self) -> int:
        """How many patches it has."""
        return 0 if self.patches is None else len(self.patches)

    @property
    def pictures(self) -> list[Tensor]:
        """Its pictures in the order of the result: patches, then the thumbnail (LA-02)."""
        return [*(() if self.patches is None else self.patches), self.thumbnail]


@dataclass(frozen=True)
class Placement:
    """Where the tensors of an item lie when they arrive: the model's device or the CPU."""

    feature: Place = "model"
    patches: Place = "model"
    counts: Place = "cpu"


@dataclass(frozen=True, eq=False)
class Case:
    """A configuration, weights and items; equal by content, hashable, savable to one file.

    Its tensors are not to be written to: whoever calls an encoder hands it copies.

    Attributes:
        config: of the encoder.
        weights: under the published checkpoint names.
        items: as a caller would hand them over.
        dtype: the model's.
        placement: where the items' tensors lie.
    """

    config: EncoderConfig
    weights: Weights
    items: tuple[ImageItem, ...]
    dtype: torch.dtype = torch.float32
    placement: Placement = Placement()

    def replace(self, **changes: Any) -> Case:
        """The same case with some fields changed."""
        return dataclasses.replace(self, **changes)

    @functools.cached_property
    def encoded(self) -> Encoded:
        """The whole case but for the weights, as JSON and tensors."""
        return encode(
            {
                "config": dataclasses.asdict(self.config),
                "dtype": str(self.dtype).removeprefix("torch."),
                "placement": dataclasses.asdict(self.placement),
                "items": [
                    {"feature": item.feature, "model_specific_data": item.model_specific_data}
                    for item in self.items
                ],
            }
        )

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the whole content."""
        return combined(self.encoded, self.weights)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def groups(self) -> list[list[Image]]:
        """The images of each item; the items must be well-formed."""
        return [_images(item) for item in self.items]

    @property
    def images(self) -> list[Image]:
        """All images in order."""
        return [image for group in self.groups for image in group]

    def regrouped(self, groups: Sequence[Sequence[Image]]) -> Case:
        """The same encoder with other images, in the plain form."""
        return self.replace(items=tuple(plain_item(group) for group in groups if group))

    @property
    def plain(self) -> Case:
        """The same images in the plain form: counts as a list, contiguous pixels."""
        return self.regrouped(self.groups)

    def __repr__(self) -> str:
        config, items = self.config, ", ".join(_describe(item) for item in self.items)
        return (
            f"Case({config.family}, {str(self.dtype).removeprefix('torch.')}, grid {config.grid}, "
            f"patch {config.patch_size}, width {config.width}, {config.heads} heads, "
            f"{config.layers} layers, {self.weights}, items=[{items}])"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        """Keep Hypothesis from printing every field."""
        printer.text(repr(self))


def combined(encoded: Encoded, weights: Weights) -> str:
    """The digest of a case, of whose parts both are."""
    both = encoded.digest() + weights.digest
    return hashlib.blake2b(both.encode(), digest_size=16).hexdigest()


def plain_item(images: Sequence[Image]) -> ImageItem:
    """An item of some images: counts as a list of ints, patches only if there are any."""
    data: dict[str, Any] = {"num_patches": [image.count for image in images]}
    patches = [image.patches for image in images if image.patches is not None and image.count]
    if patches:
        data["patch_pixel_values"] = torch.cat(patches)
    return ImageItem(torch.stack([image.thumbnail for image in images]), data)


def _images(item: ImageItem) -> list[Image]:
    counts = read_counts(item.model_specific_data.get("num_patches"))
    patches: Any = item.model_specific_data.get("patch_pixel_values")
    images, start = [], 0
    for thumbnail, count in zip(item.feature, counts, strict=True):
        own = patches[start : start + count] if count else None
        images.append(Image(thumbnail, own))
        start += count
    return images


def _describe(item: ImageItem) -> str:
    data = {name: brief(value) for name, value in item.model_specific_data.items()}
    return f"feature={brief(item.feature)} {data}"


def brief(value: Any) -> str:
    """A value on one line; tensors by dtype and shape, counts by value."""
    if isinstance(value, Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        if value.dtype.is_floating_point or value.numel() > 8:
            return f"{kind}{tuple(value.shape)}"
        return f"{kind}({value.tolist()})"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(brief(entry) for entry in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return repr(value)
