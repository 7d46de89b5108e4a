"""JSON and TOML from strangers: bounded, strict, one meaning or none."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from typing import Any

_DEEPEST = 24
_LONGEST_INTEGER = 20

# Of a line of TOML: long dotted keys take a parser the square of their length.
_LONGEST_LINE = 4000
_MOST_DOTS = 100

_BRACKETS = re.compile(r"[\[\]{}]")


class DocumentError(ValueError):
    """A text cannot be used; the message says why."""


def text(data: bytes) -> str:
    """Bytes as text.

    Raises:
        DocumentError: they are not UTF-8, or start with a byte order mark.
    """
    try:
        found = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(f"it is not text in UTF-8 (byte {error.start})") from None
    if found.startswith("\ufeff"):
        raise DocumentError("it starts with a byte order mark")
    return found


def read_json(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        DocumentError: it is not UTF-8 or not JSON, nests deeply, repeats a key, or holds a number
            or a character that JSON does not have.
    """
    source = text(data)
    _require_flat(source)
    try:
        found = json.loads(
            source,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(f"it is not JSON: {error}") from None
    _require_characters(found)
    return found


def read_toml(data: bytes) -> dict[str, Any]:
    """The value of a TOML text.

    Raises:
        DocumentError: it is not UTF-8 or not TOML, nests deeply, or has a line that is too long.
    """
    source = text(data)
    _require_flat(source)
    for place, line in enumerate(source.split("\n"), 1):
        if len(line) > _LONGEST_LINE or line.count(".") > _MOST_DOTS:
            raise DocumentError(f"line {place} is too long, or has too many dots")
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise DocumentError(f"it is not TOML: {error}") from None


def write_json(value: Any) -> bytes:
    """The one JSON text that a value has in a package."""
    written = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return written.encode() + b"\n"


def printable(value: object, longest: int = 300) -> str:
    """Text for a terminal: one line, nothing that moves the cursor or turns text around."""
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value)
    )
    return shown if len(shown) <= longest else f"{shown[:longest]}..."


def _require_flat(source: str) -> None:
    """Count brackets, in strings or not: a text that has many in a row is none of ours."""
    depth = deepest = 0
    for bracket in _BRACKETS.finditer(source):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    if deepest > _DEEPEST:
        raise DocumentError(f"it nests more than {_DEEPEST} levels deep")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise DocumentError(f"it has the key {printable(twice, 60)!r} twice")
    return found


def _no_constant(name: str) -> Any:
    raise DocumentError(f"it holds {name}, which JSON does not have")


def _finite(digits: str) -> float:
    found = float(digits)
    if found in (float("inf"), float("-inf")):
        raise DocumentError(f"it holds the number {printable(digits, 40)}, which is out of range")
    return found


def _short(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise DocumentError(f"it holds the number {printable(digits, 40)}, which is out of range")
    return int(digits)


def _require_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DocumentError("it holds half of a surrogate pair") from None
