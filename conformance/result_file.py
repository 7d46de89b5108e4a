"""A result file: everything that a run found, as JSON lines.

A header says what was checked with what, a line stands for each clause, family and dtype, and a
footer counts them, so that a file that was cut short is noticed. The shape is published in
`results.schema.json`. The same run writes the same bytes: times are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.results import VERDICTS, Footer, Header, Line, Part, Results

FORMAT = "step3vl-results-1"


class ResultsError(ValueError):
    """A result file cannot be used; the message names the file and says why."""


def write_results(results: Results, file: str | Path) -> None:
    """Write a result file.

    Raises:
        OSError: it cannot be written.
    """
    Path(file).write_bytes(to_bytes(results))


def to_bytes(results: Results) -> bytes:
    """The one content that a file of some results has."""
    records = [
        {"record": "header", "format": FORMAT, **results.header.to_json()},
        *({"record": "line", **line.to_json()} for line in results.lines),
        {"record": "footer", **results.footer.to_json()},
    ]
    texts = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    return ("\n".join(texts) + "\n").encode()


def read_results(file: str | Path) -> Results:
    """Read a result file.

    Raises:
        ResultsError: it is missing, of another format, cut short or damaged.
    """
    try:
        content = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ResultsError(f"cannot read the results {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ResultsError(f"{file} is no result file: it is not text in UTF-8") from None
    # Not by splitlines(): a message may hold a line separator of Unicode.
    texts = content.removesuffix("\n").split("\n") if content else []
    records = [_parsed(text, f"{file}, line {place}") for place, text in enumerate(texts, 1)]
    return results_of(records, file)


def results_of(records: Sequence[dict[str, Any]], file: str | Path) -> Results:
    """The results that the objects of a file are.

    Args:
        records: one for each line.
        file: for the message.

    Raises:
        ResultsError: they are of another format, cut short or damaged.
    """
    if not records or records[0].get("format") != FORMAT:
        raise ResultsError(f"{file} is no result file of format {FORMAT}")
    if records[-1].get("record") != "footer":
        raise ResultsError(f"{file} was cut short: it has no footer; run the suite again")
    kinds = zip(records, [Header, *[Line] * (len(records) - 2), Footer], strict=True)
    header, *lines, footer = (
        _read(kind, record, f"{file}, line {place}")
        for place, (record, kind) in enumerate(kinds, 1)
    )
    results = Results(header, tuple(lines), footer)
    _require_whole(results, file)
    return results


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ResultsError(f"{where} is not JSON ({error}): the file may have been cut") from None
    if not isinstance(found, dict):
        raise ResultsError(f"{where} is a {type(found).__name__}, not an object")
    return found


def _read(kind: type[Part], record: dict[str, Any], where: str) -> Any:
    expected = kind.__name__.lower()
    if record.get("record") != expected:
        raise ResultsError(f"{where} is a {record.get('record')!r}, not a {expected!r}")
    values = {name: v for name, v in record.items() if name not in ("record", "format")}
    try:
        return kind.from_json(values)
    except (ValueError, TypeError, AttributeError) as error:
        raise ResultsError(f"{where} is damaged: {error}") from None


def _require_whole(results: Results, file: str | Path) -> None:
    lines, said = len(results.lines), results.footer.lines
    if lines != said:
        raise ResultsError(f"{file} has {lines} lines between header and footer, not {said}")
    for key, times in Counter(line.key for line in results.lines).items():
        if times > 1:
            raise ResultsError(f"{file} has {' '.join(key)} more than once")
    if without := set(results.header.settings.dtypes) - set(results.header.limits):
        raise ResultsError(f"{file} names no limits of {min(without)}")
    for line in results.lines:
        if line.verdict not in VERDICTS:
            raise ResultsError(f"{file} has the unknown verdict {line.verdict!r}")
