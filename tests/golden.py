"""Packages made by the suite's own writer from records made by hand, and changes to them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import torch

from conformance import package
from conformance.answers import Answers, read_answers, write_answers
from conformance.artifact import Artifact
from conformance.cells import Cells
from conformance.certification import CHECKED, MATCHING, PROFILE, REQUIRED, SEED, Certification
from conformance.challenge import challenge
from conformance.check import all_checks
from conformance.contract import contract
from conformance.document import write_json
from conformance.driver import Driver
from conformance.options import Options
from conformance.record import Record
from conformance.result_file import read_results, write_results
from conformance.results import Line, Results
from conformance.search import PROFILES
from conformance.signature import generate, sign
from conformance.statement import statement
from conformance.waivers import read_waivers
from strategies import save_case
from tests.miniatures import Miniature
from tests.quick_certify import SUITE

NONCE = "a-nonce-of-the-verifier"
FAMILY, DTYPE = "step3-vl-10b", "float32"
WITNESS = f"witness/{FAMILY}-{DTYPE}.safetensors"

CPU = torch.device("cpu")
FAILING = challenge("the-case-that-fails", FAMILY, DTYPE, "items")[2].case

WAIVER = f"""# Why it may fail.
[[waiver]]
clause = "LA-02"
family = "{FAMILY}"
dtype = "{DTYPE}"
device = "cpu"
releases = "==1.0"
reason = "thumbnails stand first; mended in 1.1"
owner = "Jo Doe"
link = "https://example.org/issues/7"
expires = 2100-01-01
witnesses = ["{FAILING.digest}"]
"""


@contextlib.contextmanager
def clean() -> Iterator[None]:
    """Whatever the checkout holds, the suite takes it for as committed."""
    with patch("conformance.export.suite", lambda: SUITE):
        yield


def write(
    folder: Path,
    implementation: Miniature,
    *,
    dtypes: Sequence[str] = (DTYPE,),
    fails: bool = False,
    waivers: str = "",
) -> None:
    """Write and sign a package of an implementation, which answers the challenge for itself.

    Args:
        folder: of the package, which lies in a folder where keys can lie too.
        implementation: under test.
        dtypes: of the models.
        fails: whether LA-02 fails in one family, and all else passes.
        waivers: a file of them.
    """
    (folder / package.FAILURES).mkdir(parents=True)
    (folder / package.JUNIT).write_text("<testsuites/>")
    file = folder / package.FAILURES / "la_02.safetensors"
    if fails:
        save_case(FAILING, file)
    order = Certification(
        folder, NONCE, read_waivers(waivers.encode()) if waivers else (), waivers.encode()
    )
    options = Options(
        spec="miniature",
        implementation=implementation,
        families=implementation.families,
        device=CPU,
        noise_device=CPU,
        dtypes=tuple(dtypes),
        checked=CHECKED,
        required=REQUIRED,
        clauses=tuple(clause.id for clause in contract().clauses),
        asked=False,
        profile=PROFILE,
        seed=SEED,
        matching=MATCHING,
        known=(),
        known_from="none",
        witnesses=folder,
        save_witnesses=False,
        failures=str(file.parent),
        results=None,
        certification=order,
    )
    records = [
        _record(check, family, dtype, file if fails and family == FAMILY else None)
        for check in all_checks()
        for family in options.families
        for dtype in dtypes
        if check.applies(family, "items", "cpu")
    ]
    subject = Artifact(implementation.name, implementation.version, "source", 1, "0" * 64)
    with clean():
        package.write_package(Cells(options, records), Driver(implementation, CPU), subject, [])
    if not fails:
        file.parent.rmdir()
    sign_again(folder)


def _record(check, family: str, dtype: str, file: Path | None) -> Record:
    named = check.name, check.sentence, check.clauses, family, dtype
    if file is None or "LA-02" not in check.clauses:
        return Record(*named, "passed", check.after, cases=PROFILES[PROFILE], units=1.5)
    return Record(
        *named,
        "failed",
        check.after,
        cases=1,
        error=1e6,
        expected="rows within 16 noise units",
        came="2 of 2 rows differ",
        value=True,
        kind="values",
        case=repr(FAILING),
        digest=FAILING.digest,
        file=str(file),
    )


def key_of(folder: Path, name: str = "vendor") -> Path:
    """A private key that lies beside a package, made when it is first asked for."""
    file = folder.parent / f"{name}.key"
    if not file.exists():
        generate(file)
    return file


def sign_again(folder: Path, name: str = "vendor") -> None:
    """Sign a package as `python -m conformance sign` does."""
    payload = (folder / package.STATEMENT).read_bytes()
    envelope, public = sign(payload, key_of(folder, name).read_bytes())
    (folder / package.ENVELOPE).write_bytes(envelope)
    (folder / package.KEY).write_bytes(public)


def state_again(folder: Path) -> None:
    """Make the statement anew from everything else, as a forger would, and sign it."""
    said = json.loads((folder / package.STATEMENT).read_text(encoding="utf-8"))
    file = folder / package.WAIVERS
    made = statement(
        said["subject"][0],
        read_results(folder / package.RESULTS),
        read_waivers(file.read_bytes()) if file.exists() else (),
        said["predicate"]["conformance"]["challenge"],
        package.contents(folder),
    )
    (folder / package.STATEMENT).write_bytes(write_json(made))
    sign_again(folder)


def change_statement(folder: Path, change: Callable[[dict], None]) -> None:
    """Change the statement alone, and sign it."""
    file = folder / package.STATEMENT
    said = json.loads(file.read_text(encoding="utf-8"))
    change(said)
    file.write_bytes(write_json(said))
    sign_again(folder)


def change_results(folder: Path, change: Callable[[Results], Results]) -> None:
    """Change the results, with a footer and a statement that fit, and sign that."""
    file = folder / package.RESULTS
    changed = change(read_results(file))
    write_results(changed, file)
    state_again(folder)


def with_lines(change: Callable[[list[Line]], list[Line]]) -> Callable[[Results], Results]:
    """A change of the lines, the footer counted anew."""

    def changed(results: Results) -> Results:
        lines = change(list(results.lines))
        return Results.of(results.header, lines, results.footer.status)

    return changed


def with_line(clause: str, change: Callable[[Line], Line]) -> Callable[[Results], Results]:
    """A change of the line of one clause."""
    return with_lines(
        lambda lines: [change(line) if line.clause == clause else line for line in lines]
    )


def with_settings(**changes: object) -> Callable[[Results], Results]:
    """A change of the settings in the header."""

    def changed(results: Results) -> Results:
        settings = dataclasses.replace(results.header.settings, **changes)
        return with_header(settings=settings)(results)

    return changed


def with_header(**changes: object) -> Callable[[Results], Results]:
    """A change of the header."""
    return lambda results: dataclasses.replace(
        results, header=dataclasses.replace(results.header, **changes)
    )


def change_answers(folder: Path, change: Callable[[Answers], Answers]) -> None:
    """Change what stands in the witness, with a statement that fits."""
    found = read_answers((folder / WITNESS).read_bytes())
    write_answers(change(found), folder / package.WITNESS)
    state_again(folder)


def change_text(folder: Path, name: str, change: Callable[[str], str]) -> None:
    """Change a text, with a statement that fits where one can be made."""
    file = folder / name
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
