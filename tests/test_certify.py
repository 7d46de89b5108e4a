"""`pytest conformance --certify=DIR`, `sign`, `verify`: run as vendors and verifiers run them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from conformance import certification, package
from conformance.__main__ import main
from conformance.artifact import artifact
from conformance.certification import read_certification
from conformance.registry import find_implementation
from conformance.result_file import read_results
from conformance.search import PROFILES
from conformance.signature import KeyFileError, generate, read_key, sign
from conformance.verification import verify
from tests.conftest import MINIATURES, ROOT, Run
from tests.golden import FAMILY, WAIVER

Check = Callable[..., Run]
Command = Callable[..., Run]

NONCE = "--challenge=0123456789abcdef"
QUICK = ("-p", "tests.quick_certify", NONCE)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verifier who expects as few cases as the quick profile draws."""
    monkeypatch.setitem(PROFILES, "certify", 1)


@pytest.mark.usefixtures("quick")
def test_a_run_is_certified_signed_and_verified(
    check: Check, command: Command, tmp_path: Path
) -> None:
    """Twice, the second time by two workers: the same results and witness, byte by byte."""
    run = check("one_family", *QUICK, "--certify=one")
    again = check("one_family", *QUICK, "--certify=other", "-n2")
    assert (run.status, again.status) == (0, 0), run.output
    assert f"PASSED, level extended: {tmp_path / 'one'}" in run.output
    assert command("keygen", "vendor.key").status == 0
    assert (tmp_path / "vendor.key").stat().st_mode & 0o777 == 0o600
    for name in ("one", "other"):
        assert command("sign", name, "--key=vendor.key").status == 0
        key = (tmp_path / "vendor.key.pub").read_bytes()
        found = verify(tmp_path / name, key=key, challenge="0123456789abcdef")
        assert found.breaches == ()
    same = [package.RESULTS, f"witness/{FAMILY}-float32.safetensors"]
    for name in same:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    cases = ElementTree.parse(tmp_path / "one" / package.JUNIT).iter("testcase")
    assert len(list(cases)) > 50
    with (tmp_path / "other" / package.REPORT).open("a") as page:
        page.write(" ")
    unsigned = command("sign", "other", "--key=vendor.key")
    assert unsigned.status == 2
    assert f"not what the run wrote: {package.REPORT}" in unsigned.output
    assert "is no nonce" in command("verify", "one", "--challenge=short").output
    refused = command("verify", "one")  # by one who expects the whole profile
    assert refused.status == 1
    assert "CT-01 results.jsonl:1: examples is 1" in refused.output


@pytest.mark.usefixtures("quick")
def test_a_failure_is_waived_by_its_case(check: Check, command: Command, tmp_path: Path) -> None:
    """The vendor reads the digest from the first run, and waives that in the second."""
    miniature = "thumbnail_first_in_one_family"
    first = check(miniature, *QUICK, "--certify=first")
    assert first.status == 1, first.output
    assert "FAILED, level none" in first.output
    lines = read_results(tmp_path / "first" / package.RESULTS).lines
    failed = [line for line in lines if line.bad]
    assert "LA-02" in {line.clause for line in failed}
    entries = [
        WAIVER.replace("LA-02", line.clause).replace(
            read_digest(WAIVER), '", "'.join(finding.digest for finding in line.failures)
        )
        for line in failed
    ]
    (tmp_path / "waivers.toml").write_text("\n".join(entries))
    second = check(miniature, *QUICK, "--certify=second", "--waivers=waivers.toml")
    assert second.status == 0, second.output
    assert "WARNED, level extended" in second.output
    command("keygen", "k")
    command("sign", "second", "--key=k")
    found = verify(tmp_path / "second")
    assert found.breaches == ()
    assert found.recomputed is not None
    assert found.recomputed.excused > 0
    skipped = ElementTree.parse(tmp_path / "second" / package.JUNIT).iter("skipped")
    assert "waived" in {element.get("message") for element in skipped}
    assert "thumbnails stand first" in (tmp_path / "second" / package.REPORT).read_text()


def read_digest(text: str) -> str:
    """The witness that a file of waivers names."""
    return text.split('witnesses = ["')[1].split('"')[0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--certify=c", NONCE, "--profile=standard"), "--profile"),
        (("--certify=c", NONCE, "-k", "LA"), "-k cannot be given"),
        (("--certify=c",), "no nonce"),
        (("--certify=.", NONCE), "not empty"),
        ((NONCE,), "add --certify"),
        (("--certify=c", NONCE, "--waivers=missing.toml"), "missing.toml"),
    ],
)
def test_what_cannot_be_certified_is_one_line_and_status_4(
    check: Check, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    """The line names the option; nothing is written."""
    (tmp_path / "something").write_text("")
    run = check("right", *options)
    assert run.status == 4, run.output
    assert "Traceback" not in run.output
    assert len([line for line in run.output.splitlines() if word in line]) == 1, run.output
    assert not (tmp_path / "c").exists()


def config(*arguments: str, **changed: object) -> SimpleNamespace:
    """As much of pytest's configuration as a certification looks at."""
    options = {attribute: default for _, attribute, default in certification._REFUSED}
    given = {"--certify": "c", "--challenge": "0123456789abcdef", "--waivers": None}
    return SimpleNamespace(
        option=SimpleNamespace(**{**options, **changed}),
        invocation_params=SimpleNamespace(args=arguments),
        args=[str(ROOT / "conformance")],
        getoption=given.__getitem__,
    )


@pytest.mark.parametrize("refused", certification._REFUSED, ids=lambda refused: refused[0])
def test_every_option_that_changes_what_is_checked_is_refused(
    refused: tuple[str, str, object],
) -> None:
    """By its value, wherever it was set, and by its name on the command line."""
    names, attribute, default = refused
    assert read_certification(config()) is not None
    value = True if default is False else 7 if default == 0 else ["x"]
    with pytest.raises(pytest.UsageError, match=names.split("/")[0]):
        read_certification(config(**{attribute: value}))
    for name in names.split("/"):
        with pytest.raises(pytest.UsageError, match=name):
            read_certification(config(f"{name}=x"))


@pytest.mark.parametrize(("name", "attribute"), certification._ELSEWHERE)
def test_an_implementation_elsewhere_is_refused(name: str, attribute: str) -> None:
    """Its files are not in the suite's own interpreter."""
    with pytest.raises(pytest.UsageError, match=name):
        read_certification(config(**{attribute: "x"}))


def test_a_part_of_the_checks_is_refused() -> None:
    """A certificate is of all of them."""
    part = config()
    part.args = [str(ROOT / "conformance" / "checks" / "layout.py")]
    with pytest.raises(pytest.UsageError, match="all checks"):
        read_certification(part)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("2100-01-01", "2020-01-01", "expired"),
        ('clause = "LA-02"\n', "", "names no clause"),
        ("reason = ", 'reason = "" #', "gives no reason"),
        ("LA-02", "XX-99", "XX-99"),
        ("owner =", "name =", "owner"),
        ("==1.0", "one", "specifier"),
        ("2100-01-01", '"soon"', "date"),
        ("witnesses = [", "witnesses = [] # ", "digests"),
    ],
)
def test_waivers_that_cannot_be_used_end_the_run(
    tmp_path: Path, old: str, new: str, word: str
) -> None:
    """Before anything is checked."""
    file = tmp_path / "waivers.toml"
    file.write_text(WAIVER.replace(old, new))
    given = config()
    options = {"--certify": "c", "--challenge": "0123456789abcdef", "--waivers": str(file)}
    given.getoption = options.__getitem__
    with pytest.raises(pytest.UsageError, match=word):
        read_certification(given)


def test_the_subject_is_the_files_of_the_implementation(tmp_path: Path) -> None:
    """A change of one byte changes the digest; a distribution is found by its name."""
    file = tmp_path / "subject_of_a_test.py"
    text = MINIATURES.read_text(encoding="utf-8")
    found = []
    for content in (text, text, text + "\n"):
        file.write_text(content, encoding="utf-8")
        found.append(artifact(find_implementation(f"{file}:right")))
    assert found[0] == found[1] != found[2]
    assert (found[0].name, found[0].kind, found[0].files) == ("right", "source", 1)
    named = find_implementation(f"{file}:right")
    with patch.object(named, "name", "safetensors"):
        distribution = artifact(named)
    assert distribution.kind == "distribution"
    assert distribution.files > 5
    assert artifact(find_implementation("reference")).kind == "source"


def test_keys_are_ed25519_and_never_overwritten(tmp_path: Path) -> None:
    """Any other text is refused with a reason."""
    public = generate(tmp_path / "k")
    read_key(public.read_bytes())
    with pytest.raises(FileExistsError):
        generate(tmp_path / "k")
    for wrong in (b"", b"x", public.read_bytes()):
        with pytest.raises(KeyFileError):
            sign(b"{}", wrong)
    with pytest.raises(KeyFileError):
        read_key((tmp_path / "k").read_bytes())


def test_the_commands_refuse_in_one_line(command: Command, tmp_path: Path) -> None:
    """Statuses 1 and 2, without a traceback."""
    (tmp_path / "empty").mkdir()
    generate(tmp_path / "k")
    for arguments, word in (
        (("verify", "empty"), "not a package"),
        (("verify", "missing"), "not a package"),
        (("sign", "empty", "--key=k"), "statement.json"),
        (("keygen", "k"), "cannot write"),
    ):
        run = command(*arguments)
        assert run.status == 2, run.output
        assert word in run.output
        assert "Traceback" not in run.output


def test_what_must_be_installed_is_named(tmp_path: Path) -> None:
    """By every command that needs it, in one line."""
    with patch("conformance.certification.importlib.util.find_spec", lambda _: None):
        for arguments in (["keygen", str(tmp_path / "k")], ["verify", str(tmp_path)]):
            found = CliRunner().invoke(main, arguments)
            assert found.exit_code == 2
            assert "matplotlib" in found.output
        with pytest.raises(pytest.UsageError, match="certify"):
            read_certification(config())


def test_the_schema_of_a_package_is_itself_valid() -> None:
    """It is published, so others may read it."""
    from jsonschema import Draft202012Validator

    for name in ("package", "results"):
        file = ROOT / "conformance" / f"{name}.schema.json"
        Draft202012Validator.check_schema(json.loads(file.read_text(encoding="utf-8")))
