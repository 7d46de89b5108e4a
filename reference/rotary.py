"""Two-dimensional rotary position embedding, interleaved pairs (EN-07)."""

from __future__ import annotations

import torch
from torch import Tensor


def rotary_angles(
    grid: tuple[int, int],
    head_dim: int,
    *,
    base: float,
    class_token: bool,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """The angle of each channel of each token.

    The first half of the channels turns with the column, the second with the row. Within a half
    the frequencies are base^(-2i/(head_dim/2)), each used by two neighbouring channels.

    Args:
        grid: rows and columns of cells.
        head_dim: channels of one head, a multiple of 4.
        base: of the frequencies.
        class_token: if True a token of angle 0 comes first and cells count from (1, 1).
        dtype: float32 or float64.
        device: of the result.

    Returns:
        `(tokens, head_dim)`, tokens in row-major order of cells.
    """
    rows, columns = grid
    half = head_dim // 2
    exponents = torch.arange(0, half, 2, dtype=dtype, device=device) / half
    frequencies = (base**-exponents).repeat_interleave(2)
    first = int(class_token)
    row = torch.arange(first, first + rows, dtype=dtype, device=device).repeat_interleave(columns)
    column = torch.arange(first, first + columns, dtype=dtype, device=device).repeat(rows)
    angles = torch.cat([column[:, None] * frequencies, row[:, None] * frequencies], dim=1)
    return torch.cat([angles.new_zeros(first, head_dim), angles])


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn each pair of neighbouring channels (a, b) by its angle, in the angles' dtype.

    Args:
        x: `(n, heads, tokens, head_dim)`.
        angles: `(tokens, head_dim)`, equal within a pair.
    """
    wide = x.to(angles.dtype)
    turned = torch.stack([-wide[..., 1::2], wide[..., ::2]], dim=-1).flatten(-2)
    return (wide * angles.cos() + turned * angles.sin()).to(x.dtype)
