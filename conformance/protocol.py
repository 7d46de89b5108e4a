"""What an implementation offers to the suite.

An implementation is any object of this shape; it need not import anything from here.

```python
class Mine:
    name, version = "mine", "1.0"
    families = ("step3-vl-10b",)
    interface = "items"

    def build(self, config, weights, *, device, dtype):
        return MyEncoder(config.to_hf(), weights, device=device, dtype=dtype)
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import torch

Interface = Literal["items", "batch"]

# As in `reference`, which the far side of an isolated run does not have.
FAMILIES = ("step3", "step3-vl-10b", "step3p7")


class Unavailable(Exception):  # noqa: N818
    """An implementation cannot be used here; the message is one line that says what to do."""


class Item(Protocol):
    """One entry of a request: attributes `feature` and `model_specific_data`."""

    @property
    def feature(self) -> torch.Tensor:
        """The thumbnails, `(k, 3, H, W)`."""

    @property
    def model_specific_data(self) -> dict[str, Any]:
        """`num_patches`, `patch_pixel_values` and anything else."""


class Config(Protocol):
    """The configuration that an encoder is built from."""

    @property
    def family(self) -> str:
        """`step3`, `step3-vl-10b` or `step3p7`."""

    def to_hf(self) -> dict[str, Any]:
        """The published `config.json` shape."""


class Encoder(Protocol):
    """A built encoder.

    Optional: `reload(weights)` gives the encoder other weights of the same shapes; without it
    the suite builds a new encoder for each set of weights.
    """

    def get_image_feature(self, items: Sequence[Any]) -> torch.Tensor:
        """Encode and merge: `(rows, D)`, image by image, patches before the thumbnail."""


@runtime_checkable
class Implementation(Protocol):
    """An implementation under test.

    Optional: `replacements`, names of what had to be replaced to run on this machine, printed
    in the run's header.
    """

    name: str
    version: str
    families: Collection[str]
    interface: Interface

    def build(
        self,
        config: Config,
        weights: Mapping[str, torch.Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Encoder:
        """Build an encoder.

        Args:
            config: `config.family` and `config.to_hf()`.
            weights: CPU tensors under the published checkpoint names.
            device: where the encoder computes.
            dtype: its parameters' dtype.
        """
