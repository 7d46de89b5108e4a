"""Pictures: a profile and a seed, filled in bulk; never a drawn pixel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor

from reference.stream import bell, raw_bits

Shape = tuple[int, int, int]


def pixels(
    *,
    shape: Sequence[int] = (1, 3, 8, 8),
    dtype: torch.dtype = torch.float32,
    profiles: Sequence[str] = ("normal", "gradient", "checkerboard", "bright-cell"),
) -> st.SearchStrategy[Tensor]:
    """Tensors of normalised pixels `(n, 3, H, W)`; the pictures of one tensor differ.

    Values of every profile but NaN are exact in bfloat16 and float16.

    Args:
        shape: of the tensor.
        dtype: of the tensor.
        profiles: among which to draw; see `PROFILES`.
    """
    count, *picture = shape
    seeds = st.integers(0, 2**16)

    def make(profile: str, seed: int) -> Tensor:
        drawn = [paint(profile, seed, f"picture {index}", tuple(picture)) for index in range(count)]  # type: ignore[arg-type]
        return torch.stack(drawn).to(dtype) if drawn else torch.zeros(tuple(shape), dtype=dtype)

    return st.builds(make, st.sampled_from(tuple(profiles)), seeds)


def paint(profile: str, seed: int, label: str, shape: Shape) -> Tensor:
    """One float32 picture `(3, H, W)` of a profile.

    Raises:
        ValueError: there is no such profile.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile {profile!r} is none of {sorted(PROFILES)}")
    return PROFILES[profile](seed, label, shape)


def _normal(seed: int, label: str, shape: Shape) -> Tensor:
    return bell(seed, label, shape)


def _constant(seed: int, label: str, shape: Shape) -> Tensor:  # noqa: ARG001
    return torch.ones(shape)


def _gradient(seed: int, label: str, shape: Shape) -> Tensor:
    """A plane with its own slopes in each channel, in steps of 1/64 from -1 to 1."""
    channels, height, width = shape
    slopes = bell(seed, label, (channels, 2), 1.0)
    rows = torch.arange(height)[:, None] * slopes[:, 0, None, None]
    columns = torch.arange(width) * slopes[:, 1, None, None]
    plane = rows + columns
    return (plane / plane.abs().max().clamp(min=1 / 64) * 64).round() / 64


def _checkerboard(seed: int, label: str, shape: Shape) -> Tensor:
    """Squares of one to four pixels, plus a little noise so that pictures differ."""
    _, height, width = shape
    side = 1 + int(raw_bits(seed, f"{label} side", 1)[0] >> 62)
    squares = (torch.arange(height)[:, None] // side + torch.arange(width) // side) % 2
    return squares * 2.0 - 1.0 + (bell(seed, label, shape, 0.25) * 64).round() / 64


def _bright_cell(seed: int, label: str, shape: Shape) -> Tensor:
    """Dim noise with one bright two-by-two square."""
    channels, height, width = shape
    picture = (bell(seed, label, shape, 0.125) * 64).round() / 64
    spot = int(raw_bits(seed, f"{label} spot", 1)[0] >> 32)
    row, column = spot % max(height - 1, 1), (spot // height) % max(width - 1, 1)
    picture[:, row : row + 2, column : column + 2] = bell(
        seed, f"{label} colour", (channels, 1, 1), 2
    )
    return picture


def _first_cell(seed: int, label: str, shape: Shape) -> Tensor:
    """Black but for the upper left square of two by two pixels."""
    picture = torch.zeros(shape)
    picture[:, :2, :2] = bell(seed, label, (shape[0], 2, 2), 2.0)
    return picture


def _first_pixel(seed: int, label: str, shape: Shape) -> Tensor:  # noqa: ARG001
    picture = torch.zeros(shape)
    picture[:, 0, 0] = 1.0
    return picture


def _black(seed: int, label: str, shape: Shape) -> Tensor:  # noqa: ARG001
    return torch.zeros(shape)


def _extreme(seed: int, label: str, shape: Shape) -> Tensor:
    return bell(seed, label, shape) * 16


def _nan(seed: int, label: str, shape: Shape) -> Tensor:
    picture = bell(seed, label, shape)
    picture[0, -1, 0] = float("nan")
    return picture


def _inf(seed: int, label: str, shape: Shape) -> Tensor:
    picture = bell(seed, label, shape)
    picture[1, 0, -1] = float("inf")
    return picture


PROFILES: dict[str, Callable[[int, str, Shape], Tensor]] = {
    "normal": _normal,
    "constant": _constant,
    "gradient": _gradient,
    "checkerboard": _checkerboard,
    "bright-cell": _bright_cell,
    "first-cell": _first_cell,
    "first-pixel": _first_pixel,
    "black": _black,
    "extreme": _extreme,
    "nan": _nan,
    "inf": _inf,
}
