"""The errors of a run against their limits, as SVG that stands in a page by itself."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from conformance.results import Line, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Decades of error that are shown, as multiples of the limit; what is beyond stands at the edge.
_LOWEST, _HIGHEST = 1e-3, 1e3
_WIDTH, _HEIGHT = 11.0, 2.1

# A shape for each verdict, so that it reads without its colour.
_MARKERS = {"passed": ("o", "#1b6e35"), "failed": ("X", "#b3261e"), "blocked": ("s", "#7b2d8b")}


def error_plot(results: Results) -> str:
    """The largest error of each clause, a row for each family and dtype; empty if none has one.

    Returns:
        An `<svg>` element.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings = results.header.settings
    columns = [(family, dtype) for family in settings.families for dtype in settings.dtypes]
    found = {column: _measured(results, *column) for column in columns}
    found = {column: lines for column, lines in found.items() if lines}
    if not found:
        return ""
    # Names of parts by content, so that the same results give the same page.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "step3vl", "font.size": 9}):
        figure = Figure(figsize=(_WIDTH, _HEIGHT * len(found)), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(len(found), 1, squeeze=False)[:, 0]
        for place, (column, lines) in zip(axes, found.items(), strict=True):
            _draw(place, " ".join(column), lines, results.header.limits[column[1]]["row"])
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    svg = stream.getvalue()
    return svg[svg.index("<svg") :]


def _measured(results: Results, family: str, dtype: str) -> list[Line]:
    return [
        line
        for line in results.lines
        if (line.family, line.dtype) == (family, dtype)
        and line.worst > 0
        and line.verdict in _MARKERS
    ]


def _draw(axes: Axes, title: str, lines: list[Line], limit: float) -> None:
    clauses = [line.clause for line in lines]
    for verdict, (marker, colour) in _MARKERS.items():
        own = [(place, line) for place, line in enumerate(lines) if line.verdict == verdict]
        if own:
            heights = [min(max(line.worst, _LOWEST * limit), _HIGHEST * limit) for _, line in own]
            axes.plot(
                [place for place, _ in own],
                heights,
                marker,
                color=colour,
                markersize=5,
                label=verdict,
                clip_on=False,
            )
    axes.axhline(limit, color="#444", linewidth=0.8, label="limit against the reference")
    axes.axhline(2 * limit, color="#444", linewidth=0.8, linestyle=":", label="against itself")
    axes.set_yscale("log")
    axes.set_ylim(_LOWEST * limit, _HIGHEST * limit)
    axes.set_xlim(-0.5, len(lines) - 0.5)
    axes.set_xticks(range(len(lines)), clauses, rotation=90, fontsize=7)
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_ylabel("noise units")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7, frameon=False)
