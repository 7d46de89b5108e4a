"""Packages changed at random: no crash, no hang, and no acceptance of what was changed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
import pytest
from hypothesis import strategies as st

from conformance import package
from conformance.answers import read_answers
from conformance.document import DocumentError, read_json, read_toml, write_json
from conformance.result_file import ResultsError
from conformance.tensorfile import read_tensors
from conformance.verification import NotAPackage, Verification, verify
from conformance.verification.recomputation import Recomputed
from conformance.waivers import WaiverError, read_waivers
from reference import ReferenceEncoder
from tests.golden import FAMILY, WAIVER, WITNESS, sign_again, state_again, write
from tests.miniatures import Miniature, ThumbnailFirst

FILES = (
    package.STATEMENT,
    package.ENVELOPE,
    package.KEY,
    package.RESULTS,
    package.ENVIRONMENT,
    package.REPORT,
    package.JUNIT,
    package.WAIVERS,
    WITNESS,
    "failures/la_02.safetensors",
)


def fuzz(examples: int) -> Callable[[Any], Any]:
    """The same examples in every run."""
    return hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@pytest.fixture(scope="module")
def waived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good package that has a file of every sort."""
    folder = tmp_path_factory.mktemp("fuzz") / "package"
    wrong = Miniature("wrong", ThumbnailFirst, (FAMILY,))
    write(folder, wrong, fails=True, waivers=WAIVER)
    assert verify(folder).accepted
    return folder


@contextlib.contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """A copy, with its key."""
    with tempfile.TemporaryDirectory() as parent:
        shutil.copytree(folder.parent, parent, dirs_exist_ok=True)
        yield Path(parent) / "package"


def quickly(folder: Path) -> Verification | None:
    """Verify without the challenge, which no change here concerns; None if it is no package."""
    with patch("conformance.verification.verifier.recompute", lambda *_: Recomputed()):
        try:
            return verify(folder)
        except NotAPackage:
            return None


@st.composite
def edits(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """A change of some bytes: set, removed, put in, or repeated."""
    place, length = draw(st.integers(0, 1 << 20)), draw(st.integers(1, 40))
    given = draw(st.binary(min_size=1, max_size=40) | st.sampled_from((b" ", b"\n", b"\0", b"]}")))
    how = draw(st.sampled_from(("set", "remove", "insert", "repeat", "cut", "flip")))

    def edit(data: bytes) -> bytes:
        start = place % (len(data) + 1)
        match how:
            case "set":
                return data[:start] + given + data[start + len(given) :]
            case "remove":
                return data[:start] + data[start + length :]
            case "insert":
                return data[:start] + given + data[start:]
            case "repeat":
                return data[: start + length] + data[start:]
            case "cut":
                return data[:start]
        flipped = bytes([data[start] ^ (1 << length % 8)]) if start < len(data) else b""
        return data[:start] + flipped + data[start + 1 :]

    return edit


@fuzz(200)
@hypothesis.given(name=st.sampled_from(FILES), edit=edits())
def test_no_change_of_bytes_is_accepted(
    waived: Path, name: str, edit: Callable[[bytes], bytes]
) -> None:
    """Wherever it is made, and whatever it may mean."""
    with copied(waived) as folder:
        file = folder / name
        before = file.read_bytes()
        file.write_bytes(edit(before))
        hypothesis.assume(file.read_bytes() != before)
        found = quickly(folder)
        assert found is None or not found.accepted


@st.composite
def mutations(draw: st.DrawFn) -> Callable[[Any], Any]:
    """A change of one value in a tree of JSON values."""
    steps = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=7))
    value = draw(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.sampled_from(("passed", "failed", "core", "", "../../etc", "<script>", "\u2028\x1b["))
        | st.text(st.characters(codec="utf-8"), max_size=20)
        | st.just([])
        | st.just({})
    )
    how = draw(st.sampled_from(("set", "remove", "repeat")))

    def mutate(tree: Any) -> Any:
        return _mutated(tree, steps, how, value)

    return mutate


def _mutated(tree: Any, steps: list[int], how: str, value: Any) -> Any:
    if not isinstance(tree, (dict, list)) or not tree or not steps:
        return value
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    key = keys[steps[0] % len(keys)]
    deeper = isinstance(tree[key], (dict, list)) and len(steps) > 1
    changed = tree.copy()
    if deeper or how == "set":
        changed[key] = _mutated(tree[key], steps[1:], how, value)
    elif how == "remove":
        del changed[key]
    elif isinstance(changed, list):
        changed.insert(key, tree[key])
    return changed


def judged(found: Verification) -> object:
    """What an acceptance rests on."""
    assert found.results is not None
    header = found.results.header
    lines = [
        (line.key, line.verdict, line.level, line.applies, line.complete, line.cases, line.worst)
        for line in found.results.lines
    ]
    footer = dataclasses.replace(found.results.footer)
    return lines, header.contract, header.suite, header.settings, header.limits, footer


@fuzz(200)
@hypothesis.given(
    name=st.sampled_from((package.RESULTS, package.STATEMENT, package.ENVIRONMENT)),
    line=st.integers(0, 1000),
    mutate=mutations(),
)
def test_no_change_of_the_verdict_is_accepted(
    waived: Path, name: str, line: int, mutate: Callable[[Any], Any]
) -> None:
    """A vendor who changes one value, and states and signs it anew, gains nothing by it."""
    before = judged(quickly(waived))
    with copied(waived) as folder:
        file = folder / name
        if name == package.RESULTS:
            texts = file.read_text(encoding="utf-8").split("\n")[:-1]
            place = line % len(texts)
            changed = mutate(json.loads(texts[place]))
            texts[place] = json.dumps(changed, ensure_ascii=False)
            file.write_bytes(("\n".join(texts) + "\n").encode("utf-8", "surrogatepass"))
        else:
            file.write_bytes(write_json(mutate(json.loads(file.read_text(encoding="utf-8")))))
        if name == package.STATEMENT:
            sign_again(folder)
        else:
            # What cannot even be stated anew is left as it is.
            with contextlib.suppress(ResultsError, KeyError, TypeError, AttributeError, ValueError):
                state_again(folder)
        found = quickly(folder)
        assert found is None or not found.accepted or judged(found) == before


@pytest.mark.parametrize(
    "read",
    [read_json, read_toml, read_tensors, read_answers, read_waivers],
    ids=lambda r: r.__name__,
)
@fuzz(150)
@hypothesis.given(
    data=st.binary(max_size=200)
    | st.text("[]{}\",:=#\\'0123456789eE.-+ \nwaiver", max_size=200).map(str.encode)
    | st.binary(max_size=60).map(lambda text: len(text).to_bytes(8, "little") + text)
)
def test_whatever_is_read_is_a_value_or_a_reason(read: Callable[[bytes], Any], data: bytes) -> None:
    """No parser ends in another way."""
    with contextlib.suppress(DocumentError, WaiverError):
        read(data)


def test_a_right_package_is_accepted_after_all_this(tmp_path: Path) -> None:
    """So that refusals mean something."""
    write(tmp_path / "package", Miniature("right", ReferenceEncoder, (FAMILY,)))
    assert verify(tmp_path / "package").accepted
