"""Golden packages: good ones are accepted, each bad one is refused by the rule that it breaks."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from conformance import package
from conformance.answers import Answer
from conformance.challenge import challenge
from conformance.oracle import Oracle
from conformance.results import Results, Suite
from conformance.rules import rules
from conformance.trial import parts
from conformance.verification import NotAPackage, Verification, verify
from reference import ReferenceEncoder
from tests.golden import (
    CPU,
    DTYPE,
    FAMILY,
    NONCE,
    WAIVER,
    WITNESS,
    change_answers,
    change_results,
    change_statement,
    change_text,
    key_of,
    sign_again,
    state_again,
    with_header,
    with_line,
    with_lines,
    with_settings,
    write,
)
from tests.miniatures import Miniature, ThumbnailFirst

ONE = (FAMILY,)
RIGHT = Miniature("right", ReferenceEncoder, ONE)
WRONG = Miniature("wrong", ThumbnailFirst, ONE)
BOTH = Miniature("both", ReferenceEncoder, ("step3", "step3p7"))

Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Good packages by name, each in a folder of its own."""
    folders = {
        name: tmp_path_factory.mktemp(name) / "package" for name in ("passing", "waived", "dtypes")
    }
    write(folders["passing"], RIGHT)
    write(folders["waived"], WRONG, fails=True, waivers=WAIVER)
    write(folders["dtypes"], BOTH, dtypes=("float32", "bfloat16", "float64"))
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
    assert (found.certificate.level, found.certificate.result) == (level, result)
    assert (found.recomputed.right, found.recomputed.excused) == (right, excused)


def test_what_nobody_asked_for_is_said(good: dict[str, Path]) -> None:
    """Without key and nonce a package is accepted, with a note for each."""
    notes = " ".join(verify(good["passing"]).notes)
    assert "--key" in notes
    assert "--challenge" in notes
    assert "hashed, not read" in notes


@dataclass(frozen=True)
class Bad:
    """One change to a good package, and the rule that it breaks.

    Attributes:
        name: of the change.
        rule: that must be cited.
        change: made to a copy.
        of: the good package.
        file: that must be cited with the rule.
        also: rules that the change cannot but break too.
    """

    name: str
    rule: str
    change: Change
    of: str = "passing"
    file: str = ""
    also: tuple[str, ...] = ()


def put(name: str, data: bytes) -> Change:
    """Write a file."""
    return lambda folder: (folder / name).write_bytes(data) and None


def remove(name: str) -> Change:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def text(name: str, old: str, new: str, *, times: int = 1) -> Change:
    """Replace a piece of a text, and nothing else."""

    def change(folder: Path) -> None:
        def replaced(found: str) -> str:
            assert old in found
            return found.replace(old, new, times)

        change_text(folder, name, replaced)

    return change


def then_state(change: Change) -> Change:
    """A change after which the statement is made anew and signed."""

    def changed(folder: Path) -> None:
        change(folder)
        state_again(folder)

    return changed


def results(change: Callable[[Results], Results]) -> Change:
    """A change of the results that their statement follows."""
    return lambda folder: change_results(folder, change)


def claims(**changed: object) -> Change:
    """A change of what the statement claims, signed."""
    return lambda folder: change_statement(
        folder, lambda said: said["predicate"]["conformance"].update(changed)
    )


def predicate(**changed: object) -> Change:
    """A change of the predicate, signed."""
    return lambda folder: change_statement(folder, lambda said: said["predicate"].update(changed))


def waivers(old: str, new: str) -> Change:
    """A change of the waivers that the statement follows."""
    return then_state(text(package.WAIVERS, old, new))


def answers(change: Callable[[list[Answer]], list[Answer]]) -> Change:
    """A change of the answers that the statement follows."""
    return lambda folder: change_answers(
        folder, lambda found: dataclasses.replace(found, answers=tuple(change([*found.answers])))
    )


def tensor(change: Callable[[torch.Tensor], torch.Tensor], number: int = 0) -> Change:
    """A change of the tensor of one answer."""

    def changed(found: list[Answer]) -> list[Answer]:
        one = found[number]
        return [*found[:number], Answer(one.case, change(one.tensor)), *found[number + 1 :]]

    return answers(changed)


def nudged(units: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Move the rows of the first answer by some units of noise."""

    def change(found: torch.Tensor) -> torch.Tensor:
        case = challenge(NONCE, FAMILY, DTYPE, "items")[0].case
        oracle = Oracle(case.dtype, CPU, always_whole=True)
        truth = oracle.truth(case.config, case.weights, [part.picture for part in parts(case)])
        return (found.double() + units * truth.unit[:, None]).to(found.dtype)

    return change


def link(folder: Path) -> None:
    """Put a symbolic link in the place of the report."""
    (folder / package.REPORT).unlink()
    (folder / package.REPORT).symlink_to("/etc/hostname")


def linked_folder(folder: Path) -> None:
    """Put a link to a folder outside in the place of the witness."""
    (folder / package.WITNESS).rename(folder.parent / "elsewhere")
    (folder / package.WITNESS).symlink_to("../elsewhere")


def pipe(folder: Path) -> None:
    """Put a pipe, from which nobody ever reads the end, in the place of the report."""
    (folder / package.REPORT).unlink()
    os.mkfifo(folder / package.REPORT)


def huge(name: str) -> Change:
    """Make a file a terabyte large, of which the disk holds nothing."""
    return lambda folder: os.truncate(folder / name, 1 << 40)


def other_key(folder: Path) -> None:
    """Put another public key beside a signature."""
    made = key_of(folder, "other").with_name("other.key.pub")
    shutil.copy(made, folder / package.KEY)


def rsa_key(folder: Path) -> None:
    """Put a public key of another sort beside a signature."""
    key = generate_private_key(65537, 2048).public_key()
    found = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / package.KEY).write_bytes(found)


def other_statement(folder: Path) -> None:
    """Change a signed statement, but not what was signed."""
    envelope = (folder / package.ENVELOPE).read_bytes()
    claims(device="cuda")(folder)
    (folder / package.ENVELOPE).write_bytes(envelope)


def header_field(name: str, value: object) -> Change:
    """A change of the header that the statement follows."""
    return results(with_header(**{name: value}))


def suite(**changed: object) -> Change:
    """A change of what the header says of the suite."""
    whole = {"version": "0.1.0", "commit": "0" * 40, "clean": True, **changed}
    return header_field("suite", Suite(**whole))


def line(clause: str, **changed: object) -> Change:
    """A change of one line that footer and statement follow."""
    return results(with_line(clause, lambda found: dataclasses.replace(found, **changed)))


def flipped(folder: Path) -> None:
    """Call a failure a pass."""
    line("LA-02", verdict="passed")(folder)


def all_passed(folder: Path) -> None:
    """Call a failure a pass, in its check too."""
    passed = {"status": "passed", "units": 1.0, "error": 0.0}

    def change(found):
        checks = [dataclasses.replace(check, **passed) for check in found.checks]
        return dataclasses.replace(found, verdict="passed", checks=tuple(checks))

    change_results(folder, with_line("LA-02", change))


def no_checks(folder: Path) -> None:
    """Leave a line without what its checks found."""
    line("EN-07", checks=(), cases=0, worst=0.0)(folder)


def check_field(clause: str, **changed: object) -> Change:
    """A change of what the checks of a line found, its sums following."""

    def change(found):
        checks = tuple(dataclasses.replace(check, **changed) for check in found.checks)
        return dataclasses.replace(
            found,
            checks=checks,
            cases=sum(check.cases for check in checks),
            worst=max(check.units for check in checks),
        )

    return results(with_line(clause, change))


def footer(**changed: object) -> Change:
    """A change of the footer."""
    return results(
        lambda found: dataclasses.replace(
            found, footer=dataclasses.replace(found.footer, **changed)
        )
    )


def unwaived(folder: Path) -> None:
    """Leave the waivers out."""
    (folder / package.WAIVERS).unlink()
    footer(status=1)(folder)


def of_another_run(folder: Path) -> None:
    """Answers to a nonce of another run, of the same implementation."""
    other = folder.parent / "other" / "package"
    with patch("tests.golden.NONCE", "a-nonce-of-an-earlier-run"):
        write(other, RIGHT)
    shutil.copy(other / WITNESS, folder / WITNESS)
    state_again(folder)


def relabelled(folder: Path) -> None:
    """Answers to a nonce of another run, under the name of this one."""
    of_another_run(folder)
    change_answers(folder, lambda found: dataclasses.replace(found, challenge=NONCE))


BAD = [
    # The package as files.
    Bad("an extra file", "PK-01", put("notes.txt", b"x"), file="notes.txt"),
    Bad(
        "an extra tensor file",
        "PK-01",
        put("witness/more.safetensors", b""),
        file="witness/more.safetensors",
        also=("CH-02",),
    ),
    Bad("a pickle", "PK-01", put("witness/answers.pkl", b"\x80\x04."), file="witness/answers.pkl"),
    Bad("no results", "PK-01", remove(package.RESULTS), file=package.RESULTS),
    Bad("no report", "PK-01", remove(package.REPORT), file=package.STATEMENT),
    Bad("a link", "PK-02", link, file=package.REPORT),
    Bad("a linked folder", "PK-02", linked_folder, file=package.WITNESS),
    Bad("a pipe", "PK-02", pipe, file=package.REPORT),
    Bad("a folder", "PK-02", lambda folder: (folder / "more").mkdir(), file="more"),
    Bad("a huge report", "PK-03", huge(package.REPORT), file=package.REPORT),
    Bad("a huge statement", "PK-03", huge(package.STATEMENT), file=package.STATEMENT),
    Bad("a huge tensor", "PK-03", huge(WITNESS), file=WITNESS),
    Bad(
        "a doubled key",
        "PK-04",
        text(package.STATEMENT, '"_type"', '"_type": 0, "_type"'),
        file=package.STATEMENT,
    ),
    Bad(
        "NaN", "PK-04", text(package.RESULTS, '"worst": 1.5', '"worst": NaN'), file=package.RESULTS
    ),
    Bad(
        "a number out of range",
        "PK-04",
        text(package.RESULTS, '"worst": 1.5', '"worst": 1e999'),
        file=package.RESULTS,
    ),
    Bad(
        "a number of a thousand digits",
        "PK-04",
        text(package.RESULTS, '"worst": 1.5', f'"worst": {10**999}'),
        file=package.RESULTS,
    ),
    Bad(
        "half a surrogate pair",
        "PK-04",
        text(package.ENVIRONMENT, '"cpu"', '"\\ud800"'),
        file=package.ENVIRONMENT,
    ),
    Bad(
        "deep nesting", "PK-04", put(package.ENVIRONMENT, b"[" * 100_000), file=package.ENVIRONMENT
    ),
    Bad(
        "another encoding",
        "PK-04",
        put(package.ENVIRONMENT, '{"é": 1}'.encode("latin-1")),
        file=package.ENVIRONMENT,
    ),
    Bad(
        "a byte order mark",
        "PK-04",
        text(package.ENVIRONMENT, "{", "\ufeff{"),
        file=package.ENVIRONMENT,
    ),
    Bad("other spacing", "PK-04", text(package.STATEMENT, "  ", " "), file=package.STATEMENT),
    Bad(
        "an unknown field",
        "PK-05",
        text(package.RESULTS, '"worst"', '"best": 1, "worst"'),
        file=package.RESULTS,
    ),
    Bad(
        "a wrong type",
        "PK-05",
        text(package.RESULTS, '"cases": 1', '"cases": "1"'),
        file=package.RESULTS,
    ),
    Bad(
        "no footer",
        "PK-05",
        lambda folder: change_text(
            folder, package.RESULTS, lambda t: "\n".join(t.split("\n")[:-2]) + "\n"
        ),
        file=package.RESULTS,
    ),
    Bad(
        "an endless list",
        "PK-05",
        put(package.ENVIRONMENT, b"[" + b"0," * 9999 + b"0]"),
        file=package.ENVIRONMENT,
    ),
    Bad(
        "a changed report",
        "PK-06",
        text(package.REPORT, "conformant", "perfect"),
        file=package.REPORT,
    ),
    Bad(
        "a changed number",
        "PK-06",
        text(package.JUNIT, "testsuites", "testsuite"),
        file=package.JUNIT,
    ),
    # The signature.
    Bad("unsigned", "SG-01", remove(package.ENVELOPE), file=package.ENVELOPE),
    Bad("no key", "SG-01", remove(package.KEY), file=package.KEY),
    Bad(
        "a statement of another run",
        "SG-02",
        other_statement,
        file=package.ENVELOPE,
        also=("LV-03",),
    ),
    Bad(
        "an envelope of another type",
        "PK-05",
        text(package.ENVELOPE, "in-toto", "other"),
        file=package.ENVELOPE,
    ),
    Bad("a signature of another key", "SG-03", other_key, file=package.ENVELOPE, also=("SG-04",)),
    Bad("a key of another sort", "SG-03", rsa_key, file=package.KEY, also=("SG-04",)),
    Bad(
        "a key with a comment",
        "SG-03",
        text(package.KEY, "-----BEGIN", "me\n-----BEGIN"),
        file=package.KEY,
        also=("SG-04",),
    ),
    Bad(
        "signed by a stranger",
        "SG-04",
        lambda folder: sign_again(folder, "stranger"),
        file=package.KEY,
    ),
    # Where it comes from.
    Bad("an older contract", "PV-01", header_field("contract", "2026.07"), file=package.RESULTS),
    Bad("another contract's text", "PV-01", predicate(configuration=[]), file=package.STATEMENT),
    Bad("another suite", "PV-02", suite(version="0.0.1"), file=package.RESULTS),
    Bad("a changed suite", "PV-03", suite(clean=False), file=package.RESULTS),
    Bad("no checkout", "PV-03", suite(commit=None, clean=None), file=package.RESULTS),
    Bad(
        "a withdrawn suite", "PV-04", suite(version="0.0.0"), file=package.RESULTS, also=("PV-02",)
    ),
    Bad(
        "another environment",
        "PV-05",
        then_state(text(package.ENVIRONMENT, '"threads": 1', '"threads": 2')),
        file=package.ENVIRONMENT,
    ),
    # Complete and consistent.
    Bad("another seed", "CT-01", results(with_settings(seed=1)), file=package.RESULTS),
    Bad("fewer examples", "CT-01", results(with_settings(examples=2)), file=package.RESULTS),
    Bad(
        "failures excused by the suite",
        "CT-01",
        results(with_settings(known="own")),
        file=package.RESULTS,
    ),
    Bad(
        "a family left out",
        "CT-01",
        results(with_settings(families=("step3",))),
        file=package.RESULTS,
        also=(
            "CT-02",
            "CH-02",
        ),
    ),
    Bad(
        "a row removed", "CT-02", results(with_lines(lambda lines: lines[1:])), file=package.RESULTS
    ),
    Bad(
        "a row repeated",
        "CT-02",
        lambda folder: change_text(
            folder, package.RESULTS, lambda t: "\n".join([*t.split("\n")[:2], *t.split("\n")[1:]])
        ),
        file=package.RESULTS,
    ),
    Bad(
        "rows out of order",
        "CT-02",
        results(with_lines(lambda lines: lines[::-1])),
        file=package.RESULTS,
    ),
    Bad("a row of another family", "CT-02", line("LA-01", family="step3"), file=package.RESULTS),
    Bad(
        "a row of another dtype",
        "CT-02",
        line("LA-01", dtype="float16"),
        file=package.RESULTS,
    ),
    Bad(
        "core called extended",
        "CT-03",
        line("LA-01", level="extended", required=False),
        file=package.RESULTS,
    ),
    Bad("said not to apply", "CT-03", line("LA-01", applies=False), file=package.RESULTS),
    Bad("a check left out", "CT-04", no_checks, file=package.RESULTS, also=("CT-05",)),
    Bad("a verdict flipped", "CT-05", flipped, "waived", package.RESULTS, also=("WA-03",)),
    Bad(
        "a blocked failure",
        "CT-05",
        line("LA-02", verdict="blocked", blocked_by=("EN-01",)),
        "waived",
        package.RESULTS,
    ),
    Bad("a case repeated", "CT-05", line("LA-01", cases=100), file=package.RESULTS),
    Bad("no case at all", "CT-05", check_field("LA-01", cases=0), file=package.RESULTS),
    Bad("more cases than are drawn", "CT-05", check_field("LA-01", cases=51), file=package.RESULTS),
    Bad(
        "a pass beyond the limits", "CT-06", check_field("EN-01", units=17.0), file=package.RESULTS
    ),
    Bad(
        "wider limits",
        "CT-06",
        header_field("limits", {DTYPE: {"row": 80.0, "element": 20.0}}),
        file=package.RESULTS,
    ),
    Bad(
        "other counts in the footer",
        "CT-07",
        footer(verdicts={"passed": 1, "failed": 0, "known": 0, "blocked": 0, "not checked": 0}),
        file=package.RESULTS,
    ),
    Bad("another exit status", "CT-07", footer(status=1), file=package.RESULTS),
    Bad(
        "a complaint",
        "CT-08",
        footer(complaints=("a fault of the suite",)),
        file=package.RESULTS,
        also=("CT-07",),
    ),
    Bad(
        "a failing case gone",
        "CT-09",
        then_state(remove("failures/la_02.safetensors")),
        "waived",
        package.RESULTS,
    ),
    Bad(
        "another failing case",
        "CT-09",
        then_state(
            lambda folder: shutil.copy(folder / WITNESS, folder / "failures/la_02.safetensors")
        ),
        "waived",
        "failures/la_02.safetensors",
    ),
    Bad(
        "a failing case of a pass",
        "CT-09",
        then_state(all_passed),
        "waived",
        "failures/la_02.safetensors",
        also=(
            "CT-05",
            "WA-03",
        ),
    ),
    # The level.
    Bad("a higher level", "LV-01", claims(level="core"), "waived", package.STATEMENT),
    Bad("a better result", "LV-01", predicate(result="PASSED"), "waived", package.STATEMENT),
    Bad("a failure hidden", "LV-01", predicate(warnedTests=[]), "waived", package.STATEMENT),
    Bad("core failed", "LV-02", unwaived, "waived", package.RESULTS),
    Bad("another device", "LV-03", claims(device="cuda"), file=package.STATEMENT),
    Bad("a waiver kept quiet", "LV-03", claims(waived=[]), "waived", package.STATEMENT),
    # Waivers.
    Bad(
        "waivers that are no TOML",
        "WA-01",
        text(package.WAIVERS, "[[waiver]]", "[[waiver"),
        "waived",
        package.WAIVERS,
    ),
    Bad(
        "a waiver without an owner",
        "WA-01",
        text(package.WAIVERS, "owner =", "# owner ="),
        "waived",
        package.WAIVERS,
    ),
    Bad(
        "an expired waiver", "WA-02", waivers("2100-01-01", "2026-11-30"), "waived", package.WAIVERS
    ),
    Bad(
        "a waiver of a line that passed",
        "WA-03",
        waivers("LA-02", "LA-03"),
        "waived",
        package.WAIVERS,
        also=(
            "CT-07",
            "LV-02",
        ),
    ),
    Bad(
        "a waiver of another release",
        "WA-03",
        waivers("==1.0", "==0.9"),
        "waived",
        package.WAIVERS,
        also=(
            "CT-07",
            "LV-02",
        ),
    ),
    Bad(
        "a waiver of another device",
        "WA-03",
        waivers('"cpu"', '"cuda"'),
        "waived",
        package.WAIVERS,
        also=(
            "CT-07",
            "LV-02",
        ),
    ),
    Bad(
        "a waiver without a clause",
        "WA-04",
        waivers('clause = "LA-02"\n', ""),
        "waived",
        package.WAIVERS,
        also=(
            "CT-07",
            "LV-02",
        ),
    ),
    Bad(
        "a core waiver without a reason",
        "WA-04",
        waivers("reason = ", 'reason = "" # '),
        "waived",
        package.WAIVERS,
    ),
    Bad("a waiver of every release", "WA-04", waivers("==1.0", ""), "waived", package.WAIVERS),
    Bad(
        "a waiver of another case",
        "WA-05",
        waivers('witnesses = ["', f'witnesses = ["{"0" * 32}"] # "'),
        "waived",
        package.WAIVERS,
        also=(
            "CT-07",
            "LV-02",
        ),
    ),
    Bad(
        "two waivers of a line",
        "WA-06",
        then_state(put(package.WAIVERS, (WAIVER * 2).encode())),
        "waived",
        package.WAIVERS,
    ),
    # The challenge.
    Bad("a nonce of another run", "CH-01", of_another_run, file=WITNESS),
    Bad(
        "another nonce claimed",
        "CH-01",
        claims(challenge="a-nonce-of-nobody"),
        file=package.STATEMENT,
    ),
    Bad("answers of another run, relabelled", "CH-02", relabelled, file=WITNESS),
    Bad("no answers", "PK-01", remove(WITNESS), file=package.STATEMENT, also=("CH-02",)),
    Bad("an answer left out", "CH-02", answers(lambda found: found[:-1]), file=WITNESS),
    Bad("answers in another order", "CH-02", answers(lambda found: found[::-1]), file=WITNESS),
    Bad(
        "a truncated tensor",
        "CH-02",
        then_state(lambda folder: os.truncate(folder / WITNESS, 2000)),
        file=WITNESS,
    ),
    Bad(
        "a header that never ends",
        "CH-02",
        then_state(put(WITNESS, b"\xff" * 8 + b"{}")),
        file=WITNESS,
    ),
    Bad("a tensor nudged by ten noise units", "CH-03", tensor(nudged(10.0)), file=WITNESS),
    Bad(
        "one element far off",
        "CH-03",
        tensor(lambda t: t.index_put((torch.tensor(0), torch.tensor(0)), t.abs().max() * 2)),
        file=WITNESS,
    ),
    Bad("NaN in a tensor", "CH-03", tensor(lambda t: t * float("nan")), file=WITNESS),
    Bad(
        "an error for an answer",
        "CH-03",
        answers(lambda found: [Answer(found[0].case, None, "ValueError: no"), *found[1:]]),
        file=WITNESS,
    ),
    Bad("rows left out", "CH-04", tensor(lambda t: t[:-1]), file=WITNESS),
    Bad("another dtype", "CH-04", tensor(torch.Tensor.double), file=WITNESS),
]


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
