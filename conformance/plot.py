"""A plot of errors, small enough for a cell of a table: inline SVG without a script."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conformance.matrix import Column

HEIGHT = 20.0
STEP = 4.0

# Decades of error, in multiples of the limit, from the lower edge to the upper.
_LOWEST, _HIGHEST = -2.0, 1.0


def plot(columns: Sequence[Column], clause: str) -> dict[str, object] | None:
    """The errors of a clause, a dot for each column; None if nothing was measured.

    The height of a dot is the logarithm of the error over the limit of its dtype, cut at the edges.

    Returns:
        `width` and `limits` (the heights of the limit against the reference and, twice that,
        against the implementation itself), `good` and `bad` (path data), and `worst` (noise units).
    """
    dots: dict[bool, list[str]] = {False: [], True: []}
    worst = 0.0
    for place, column in enumerate(columns):
        line = column.lines.get(clause)
        if line is not None and line.worst > 0:
            limit = column.header.limits[column.dtype]["row"]
            at = f"M{STEP * (place + 0.5):g} {_height(line.worst / limit):g}h0"
            dots[line.bad].append(at)
            worst = max(worst, line.worst)
    if not worst:
        return None
    return {
        "width": STEP * len(columns),
        "limits": (_height(1.0), _height(2.0)),
        "good": "".join(dots[False]),
        "bad": "".join(dots[True]),
        "worst": worst,
    }


def _height(ratio: float) -> float:
    decades = min(max(math.log10(ratio), _LOWEST), _HIGHEST)
    share = (decades - _LOWEST) / (_HIGHEST - _LOWEST)
    return round(HEIGHT - 2 - share * (HEIGHT - 4), 1)
