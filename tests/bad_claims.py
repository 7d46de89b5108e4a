"""Bad packages by what they say (PV, CT, LV, WA, CH)."""

from __future__ import annotations

import os
import shutil

import torch

from conformance import package
from conformance.answers import Answer
from tests.bad import Bad
from tests.changes import (
    all_passed,
    another_family,
    answers,
    check_field,
    claims,
    flipped,
    footer,
    grades,
    header_field,
    line,
    no_checks,
    nudged,
    of_another_run,
    predicate,
    put,
    relabelled,
    remove,
    results,
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
    with_lines,
    with_settings,
)

BAD = [
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
