"""Texts of strangers: one meaning or none, in time that their length bounds."""

from __future__ import annotations

import pytest

from conformance.document import DocumentError, printable, read_json, read_toml, write_json


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"\xff", "UTF-8"),
        ("\ufeff{}".encode(), "byte order mark"),
        (b'{"a": 1, "a": 1}', "'a' twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": ' + b"1" * 5000 + b"}", "out of range"),
        (b'{"a": "\\udc00"}', "surrogate"),
        (b"[" * 100_000, "deep"),
        (b'{"a": 1', "not JSON"),
        (b"", "not JSON"),
        (b'{"a": 1} {"b": 2}', "not JSON"),
        (b"{" + b",".join(b'"%d": 0' % (n // 2) for n in range(100_000)) + b"}", "twice"),
    ],
)
def test_json_of_two_meanings_or_none_is_refused(data: bytes, word: str) -> None:
    """The message says why."""
    with pytest.raises(DocumentError, match=word):
        read_json(data)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"a = 1\na = 2", "not TOML"),
        (b"a." * 100_000 + b"a = 1", "line 1"),
        (b"a = " + b"[" * 1000, "deep"),
        (b"a = '\xff'", "UTF-8"),
    ],
)
def test_toml_of_two_meanings_or_none_is_refused(data: bytes, word: str) -> None:
    """Long dotted keys too, on which a parser would take minutes."""
    with pytest.raises(DocumentError, match=word):
        read_toml(data)


def test_a_value_has_one_text() -> None:
    """Whatever the order of its keys."""
    value = {"b": [1, 2.5, None, True], "a": "\u2028é"}
    assert write_json(value) == write_json(dict(reversed(value.items())))
    assert read_json(write_json(value)) == value


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "\u202egnp.exe", "\ud800", "x" * 10_000])
def test_what_is_printed_is_harmless(text: str) -> None:
    """One short line, in the order in which it is written."""
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) < 400
