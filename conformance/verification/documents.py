"""The texts of an untrusted package, parsed and of the published shape."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator

from conformance import package
from conformance.document import DocumentError, printable, read_json, write_json
from conformance.result_file import ResultsError, results_of, to_bytes
from conformance.results import Key, Results
from conformance.rules import Breach
from conformance.statement import FORMAT
from conformance.verification.layout import Layout, NotAPackage, Refused

_LONGEST_LINE = 1 << 20
_MOST_LINES = 2000
_MOST_ENTRIES = 2000


@dataclass(frozen=True)
class Documents:
    """What a package says.

    Attributes:
        statement: as JSON values.
        environment: as JSON values.
        results: of the run.
        places: the line of the result file that each key stands on.
    """

    statement: dict[str, Any]
    environment: dict[str, Any]
    results: Results
    places: Mapping[Key, int]

    @property
    def claims(self) -> dict[str, Any]:
        """What the statement says beyond what every test-result predicate has."""
        found: dict[str, Any] = self.statement["predicate"]["conformance"]
        return found


def read_documents(layout: Layout) -> Documents:
    """Parse the statement, the results and the environment.

    Raises:
        NotAPackage: the statement is of another format.
        Refused: one of them breaks a rule.
    """
    statement = read_statement(layout)
    for name in (package.RESULTS, package.ENVIRONMENT):
        if name not in layout.sizes:
            raise Refused(Breach("PK-01", "the package lacks it", name))
    environment = _shaped(layout.read(package.ENVIRONMENT), "environment", package.ENVIRONMENT)
    results, places = _results(layout.read(package.RESULTS))
    return Documents(statement, environment, results, places)


def read_statement(layout: Layout) -> dict[str, Any]:
    """Parse the statement.

    Raises:
        NotAPackage: it is of another format.
        Refused: it breaks a rule.
    """
    if package.STATEMENT not in layout.sizes:
        raise Refused(Breach("PK-02", "it is no plain file", package.STATEMENT))
    data = layout.read(package.STATEMENT)
    parsed = _parsed(data, package.STATEMENT)
    if _format(parsed) != FORMAT:
        raise NotAPackage(f"{package.STATEMENT} is no statement of format {FORMAT}")
    return _in_shape(parsed, data, "statement", package.STATEMENT)


def read_envelope(data: bytes) -> dict[str, Any]:
    """Parse the envelope of a signature.

    Raises:
        Refused: it breaks a rule.
    """
    return _shaped(data, "envelope", package.ENVELOPE)


def _format(parsed: Any) -> Any:
    for name in ("predicate", "conformance", "format"):
        parsed = parsed.get(name) if isinstance(parsed, dict) else None
    return parsed


def _parsed(data: bytes, file: str, line: int = 0) -> Any:
    try:
        found = read_json(data)
    except DocumentError as error:
        raise Refused(Breach("PK-04", str(error), file, line)) from None
    if _longest(found) > _MOST_ENTRIES:
        raise Refused(Breach("PK-05", f"a list has more than {_MOST_ENTRIES} entries", file, line))
    return found


def _longest(value: Any) -> int:
    """The most entries of a list or object in a value that does not nest deeply."""
    if not isinstance(value, (dict, list)):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return max(len(value), max(map(_longest, inner), default=0))


def _shaped(data: bytes, part: str, file: str) -> dict[str, Any]:
    """A JSON text in the one form that the suite writes, of a part of the published schema."""
    return _in_shape(_parsed(data, file), data, part, file)


def _in_shape(found: Any, data: bytes, part: str, file: str) -> dict[str, Any]:
    """A parsed text, held to that form and that part."""
    _require_shape("package", part, found, file, 0)
    if write_json(found) != data:
        raise Refused(Breach("PK-04", "it is not in the form that the suite writes", file))
    shaped: dict[str, Any] = found
    return shaped


def _results(data: bytes) -> tuple[Results, dict[Key, int]]:
    texts = data.removesuffix(b"\n").split(b"\n")
    if len(texts) > _MOST_LINES or max(map(len, texts)) > _LONGEST_LINE:
        raise Refused(Breach("PK-03", "it has too many lines, or too long ones", package.RESULTS))
    if len(texts) < 3:
        raise Refused(Breach("PK-05", "it was cut short", package.RESULTS))
    parts = ["header", *["line"] * (len(texts) - 2), "footer"]
    records: list[dict[str, Any]] = []
    places: dict[Key, int] = {}
    for place, (text, part) in enumerate(zip(texts, parts, strict=True), 1):
        record = _parsed(text, package.RESULTS, place)
        _require_shape("results", part, record, package.RESULTS, place)
        records.append(record)
        if part == "line":
            key = record["clause"], record["family"], record["dtype"]
            if key in places:
                message = f"{' '.join(key)} stands on line {places[key]} already"
                raise Refused(Breach("CT-02", message, package.RESULTS, place))
            places[key] = place
    return _whole(records, data), places


def _whole(records: list[dict[str, Any]], data: bytes) -> Results:
    try:
        found = results_of(records, package.RESULTS)
    except ResultsError as error:
        raise Refused(Breach("PK-05", str(error), package.RESULTS)) from None
    written = to_bytes(found)
    if written != data:
        same = zip(written.split(b"\n"), data.split(b"\n"), strict=False)
        place = next((n for n, (one, other) in enumerate(same, 1) if one != other), 1)
        message = "it is not in the form that the suite writes"
        raise Refused(Breach("PK-04", message, package.RESULTS, place))
    return found


def _require_shape(schema: str, part: str, value: Any, file: str, line: int) -> None:
    error = next(_validator(schema, part).iter_errors(value), None)
    if error is not None:
        at = "/".join(map(str, error.absolute_path)) or "the whole"
        raise Refused(Breach("PK-05", f"{at}: {printable(error.message, 160)}", file, line))


@functools.cache
def _validator(schema: str, part: str) -> Draft202012Validator:
    found = resources.files("conformance").joinpath(f"{schema}.schema.json")
    definitions = json.loads(found.read_text(encoding="utf-8"))["$defs"]
    return Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": definitions})
