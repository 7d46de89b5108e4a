"""The power of the suite as tables: for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

from conformance.contract import contract
from conformance.judge import limits
from conformance.options import DTYPES
from conformance.power import Detection, Score
from reference import FAMILIES


def write_json(file: Path, found: Sequence[Score], detections: Sequence[Detection]) -> None:
    """Write everything, with what it was measured on."""
    content = {
        **_provenance(),
        "scores": [score.to_json() for score in found],
        "detections": [one.to_json() for one in detections],
    }
    file.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def markdown(found: Sequence[Score], detections: Sequence[Detection]) -> str:
    """The scores, then a row for each fault, or for each harmless difference if there is none."""
    about = ", ".join(f"{name} {value}" for name, value in _provenance().items())
    lines = [f"Measured: {about}.", "", *summary(found), ""]
    if not any(score.faults for score in found):
        return "\n".join([*lines, *_harmless_rows(detections)]) + "\n"
    lines += ["| fault | must be named by | families | dtype | caught | failed (blocked) |"]
    lines += ["|---|---|---|---|---|---|"]
    for (name, dtype), own in _by_fault(detections).items():
        caught = all(one.caught for one in own)
        families = ", ".join(one.family for one in own)
        lines.append(
            f"| {name} | {own[0].clause} | {families} | {dtype} | "
            f"{'yes' if caught else '**no**'} | {_clauses(own)} |"
        )
    return "\n".join(lines) + "\n"


def summary(found: Sequence[Score]) -> list[str]:
    """The scores as a Markdown table, a row for each dtype, then what was misjudged."""
    lines = _scores(found) if any(score.faults for score in found) else _alarms(found)
    for score in found:
        for one in score.missed:
            limit = limits(DTYPES[score.dtype]).row
            size = f"{one.units:.2g} noise units of {limit:g}" if one.units else "nothing to see"
            lines += ["", f"missed in {score.dtype}: {one.name} ({one.family}): {size}"]
        for one in score.false_alarms:
            where = f"{one.name} ({one.family}, seed {one.seed})"
            lines += ["", f"FALSE ALARM in {score.dtype}: {where}: {', '.join(one.failed)}"]
    if found and found[0].faults:
        lines += ["", f"no fault must be named by: {', '.join(found[0].unexercised) or 'none'}"]
    return lines


def _scores(found: Sequence[Score]) -> list[str]:
    lines = [
        "| dtype | faults | caught | named | well diagnosed | smallest case | one image | "
        "median s | false alarms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {score.dtype} | {len(score.faults)} | {score.caught:.1%} | {score.named:.1%} | "
        f"{score.well_diagnosed:.1%} | {score.small:.1%} | {score.single:.1%} | "
        f"{score.median_seconds:.1f} | "
        f"{len(score.false_alarms)} of {score.harmless} ({score.harmless_cases} cases) |"
        for score in found
    ]
    return lines


def _alarms(found: Sequence[Score]) -> list[str]:
    lines = ["| dtype | runs of right encoders | cases | false alarms |", "|---|---|---|---|"]
    return lines + [
        f"| {score.dtype} | {score.harmless} | {score.harmless_cases} | {len(score.false_alarms)} |"
        for score in found
    ]


def _harmless_rows(detections: Sequence[Detection]) -> list[str]:
    lines = [
        "| difference | families | dtypes | seeds | cases | failed |",
        "|---|---|---|---|---|---|",
    ]
    for name in sorted({one.name for one in detections}):
        own = [one for one in detections if one.name == name]
        families, dtypes = (
            ", ".join(each for each in order if each in {getattr(one, field) for one in own})
            for field, order in (("family", FAMILIES), ("dtype", DTYPES))
        )
        seeds, cases = len({one.seed for one in own}), sum(one.cases for one in own)
        lines.append(
            f"| {name} | {families} | {dtypes} | {seeds} | {cases} | {_clauses(own) or 'none'} |"
        )
    return lines


def _by_fault(detections: Sequence[Detection]) -> dict[tuple[str, str], list[Detection]]:
    found: dict[tuple[str, str], list[Detection]] = defaultdict(list)
    for one in sorted(detections, key=lambda one: (one.dtype, one.kind, one.name, one.family)):
        if one.clause:
            found[one.name, one.dtype].append(one)
    return found


def _clauses(own: Sequence[Detection]) -> str:
    failed = sorted({clause for one in own for clause in one.failed})
    blocked = sorted({clause for one in own for clause in one.blocked} - set(failed))
    return ", ".join(failed) + (f" ({', '.join(blocked)})" if blocked else "")


def _provenance() -> dict[str, str]:
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "contract": contract().version,
        "suite": version("step3vl-conformance"),
        "torch": torch.__version__,
        "hypothesis": version("hypothesis"),
    }
