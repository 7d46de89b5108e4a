"""Bad packages: each a good one, one change, and the rule that the change breaks."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass

import torch

from conformance import package
from conformance.answers import Answer
from tests.changes import (
    Change,
    all_passed,
    another_family,
    answers,
    check_field,
    claims,
    flipped,
    footer,
    grades,
    header_field,
    huge,
    line,
    link,
    linked_folder,
    no_checks,
    nudged,
    of_another_run,
    other_key,
    other_statement,
    pipe,
    predicate,
    put,
    relabelled,
    remove,
    results,
    rsa_key,
    suite,
    tensor,
    text,
    then_state,
    unwaived,
    waivers,
)
from tests.golden import (
    DTYPE,
    WAIVER,
    WITNESS,
    change_text,
    sign_again,
    with_lines,
    with_settings,
)


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
    Bad(
        "fewer cases than asked for",
        "CT-01",
        results(with_settings(examples=2)),
        file=package.RESULTS,
        also=("CT-05",),
    ),
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
    Bad("more cases than are drawn", "CT-05", check_field("LA-01", cases=99), file=package.RESULTS),
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
    Bad("a higher level", "LV-01", grades(level="core"), "waived", package.STATEMENT),
    Bad(
        "a better result of a family", "LV-01", grades(result="PASSED"), "waived", package.STATEMENT
    ),
    Bad("a better result", "LV-01", predicate(result="PASSED"), "waived", package.STATEMENT),
    Bad("a family that was not checked", "LV-01", another_family, file=package.STATEMENT),
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
    Bad(
        "a waiver of all releases to come",
        "WA-04",
        waivers('"==1.0"', '">=0"'),
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
