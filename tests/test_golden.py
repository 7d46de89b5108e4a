"""Golden packages: good ones are accepted, each bad one is refused by the rule that it breaks."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

from conformance import package
from conformance.answers import Answer, read_answers
from conformance.certificate import Grade
from conformance.rules import rules
from conformance.verification import NotAPackage, Verification, verify
from conformance.verification.recomputation import recompute
from reference import ReferenceEncoder
from tests import bad_claims, bad_files
from tests.bad import Bad
from tests.changes import (
    BOTH,
    HALF,
    RIGHT,
    WRONG,
    nudged,
    tensor,
    waivers,
)
from tests.golden import (
    DTYPE,
    FAMILY,
    NONCE,
    WAIVER,
    WITNESS,
    key_of,
    write,
)
from tests.miniatures import Miniature

BAD = (*bad_files.BAD, *bad_claims.BAD)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Good packages by name, each in a folder of its own."""
    folders = {
        name: tmp_path_factory.mktemp(name) / "package"
        for name in ("passing", "waived", "dtypes", "half")
    }
    write(folders["passing"], RIGHT)
    write(folders["waived"], WRONG, fails=True, waivers=WAIVER)
    write(folders["dtypes"], BOTH, dtypes=("float32", "bfloat16", "float64"))
    write(folders["half"], HALF, fails=True)
    return folders


@pytest.fixture
def copied(good: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """A package of one's own to change, with its key beside it."""

    def copy(name: str) -> Path:
        shutil.copytree(good[name].parent, tmp_path / name)
        return tmp_path / name / "package"

    return copy


@pytest.mark.parametrize(
    ("name", "level", "result", "right", "excused"),
    [
        ("passing", "extended", "PASSED", 8, 0),
        ("waived", "extended", "WARNED", 4, 4),
        ("dtypes", "extended", "PASSED", 48, 0),
    ],
)
def test_a_good_package_is_accepted(
    good: dict[str, Path], name: str, level: str, result: str, right: int, excused: int
) -> None:
    """With the key and the nonce that the verifier has."""
    public = key_of(good[name]).with_name("vendor.key.pub").read_bytes()
    found = verify(good[name], key=public, challenge=NONCE)
    assert found.breaches == ()
    assert set(found.certificate.grades.values()) == {Grade(level, result)}
    assert found.certificate.result == result
    assert (found.recomputed.right, found.recomputed.excused) == (right, excused)


def test_a_family_can_be_certified_beside_one_that_fails(good: dict[str, Path]) -> None:
    """To a verifier who asks for it alone; to one who asks for all, or for the other, it is not."""
    found = verify(good["half"], families=["step3"])
    assert found.breaches == ()
    assert found.certificate.grades == {
        FAMILY: Grade("none", "FAILED"),
        "step3": Grade("extended", "PASSED"),
    }
    assert found.certificate.result == "FAILED"
    assert (found.recomputed.right, found.recomputed.uncertified) == (8, 4)
    for families in ([], [FAMILY], ["step3", FAMILY], ["step3p7"]):
        refused = verify(good["half"], families=families)
        assert {breach.rule for breach in refused.breaches} == {"LV-02"}


def test_a_family_that_claims_core_is_recomputed_though_nobody_asks_for_it(tmp_path: Path) -> None:
    """A package that is wrong anywhere is refused."""
    write(tmp_path / "package", Miniature("two", ReferenceEncoder, (FAMILY, "step3")))
    tensor(nudged(10.0))(tmp_path / "package")
    found = verify(tmp_path / "package", families=["step3"])
    assert {breach.rule for breach in found.breaches} == {"CH-03"}


def test_what_nobody_asked_for_is_said(good: dict[str, Path]) -> None:
    """Without key and nonce a package is accepted, with a note for each."""
    notes = " ".join(verify(good["passing"]).notes)
    assert "--key" in notes
    assert "--challenge" in notes
    assert "hashed, not read" in notes


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_package_is_refused_by_the_rule_that_it_breaks(
    bad: Bad, copied: Callable[[str], Path]
) -> None:
    """The rule is cited, with the file; a verifier who has the vendor's key sees no more."""
    folder = copied(bad.of)
    public = key_of(folder).with_name("vendor.key.pub").read_bytes()
    bad.change(folder)
    with patch(
        "conformance.verification.provenance.withdrawn",
        lambda: {"contract": {}, "suite": {"0.0.0": "its noise was measured wrongly"}},
    ):
        found = verify(folder, key=public, challenge=NONCE)
    assert not found.accepted
    cited = {breach.rule for breach in found.breaches}
    assert cited == {bad.rule, *bad.also}, list(map(str, found.breaches))
    if bad.file:
        cited = {breach.file for breach in found.breaches if breach.rule == bad.rule}
        assert bad.file in cited, list(map(str, found.breaches))


def test_every_rule_has_a_bad_package() -> None:
    """A rule that nothing breaks may not be checked at all."""
    assert {bad.rule for bad in BAD} == set(rules())


def test_a_tensor_within_the_noise_is_accepted(copied: Callable[[str], Path]) -> None:
    """Two units more are still within what a right encoder may be off by."""
    folder = copied("passing")
    tensor(nudged(2.0))(folder)
    found = verify(folder)
    assert found.accepted
    assert 1 < found.recomputed.worst < 8


def test_not_every_answer_can_be_excused(good: dict[str, Path]) -> None:
    """A waiver of EN-01 excuses wrong answers; where none is right, nothing was shown."""
    found = read_answers((good["passing"] / WITNESS).read_bytes())
    wrong = [Answer(one.case, None, "ValueError: no") for one in found.answers]
    waived = {("EN-01", FAMILY, DTYPE)}
    for count, breaches in ((8, 1), (7, 0)):
        mixed = dataclasses.replace(found, answers=(*wrong[:count], *found.answers[count:]))
        into = recompute(mixed, "items", waived, certified=True)
        assert (into.excused, len(into.breaches)) == (count, breaches)


def test_a_dtype_that_is_asked_for_must_be_there(good: dict[str, Path]) -> None:
    """A package of float32 says nothing of bfloat16."""
    assert verify(good["passing"], dtypes=["float32"]).accepted
    found = verify(good["passing"], dtypes=["float32", "bfloat16"])
    assert {breach.rule for breach in found.breaches} == {"LV-02"}


def test_what_is_verified_is_named(good: dict[str, Path]) -> None:
    """Name, version, how many files and their digest."""
    assert verify(good["passing"]).subject == f"right 1.0, source of 1 files, sha256 {'0' * 64}"


def test_another_nonce_than_the_one_given_is_refused(good: dict[str, Path]) -> None:
    """Although the answers are right."""
    found = verify(good["passing"], challenge="a-nonce-that-was-not-answered")
    assert {breach.rule for breach in found.breaches} == {"CH-01"}


def test_a_breach_names_the_line(copied: Callable[[str], Path]) -> None:
    """By the number that an editor shows."""
    folder = copied("waived")
    waivers("==1.0", "==0.9")(folder)
    found: Verification = verify(folder)
    (breach,) = [b for b in found.breaches if b.rule == "WA-03"]
    assert str(breach).startswith("WA-03 waivers.toml:2: ")


def test_what_a_stranger_wrote_is_printed_harmlessly(copied: Callable[[str], Path]) -> None:
    """No escape sequence and no line break reaches the terminal."""
    folder = copied("passing")
    (folder / "a\x1b[2Jb\nc").write_text("")
    (breach,) = verify(folder).breaches
    assert breach.rule == "PK-01"
    assert str(breach).isprintable()


@pytest.mark.parametrize("what", ["missing", "a file", "empty", "of another format"])
def test_what_is_no_package_is_no_package(what: str, tmp_path: Path) -> None:
    """Which is another thing than a bad one."""
    folder = tmp_path / "package"
    if what == "a file":
        folder.write_text("")
    elif what != "missing":
        folder.mkdir()
    if what == "of another format":
        (folder / package.STATEMENT).write_text('{"predicate": {"conformance": {"format": "x"}}}')
    with pytest.raises(NotAPackage):
        verify(folder)
