"""Bad packages by what their files and their signature are (PK, SG)."""

from __future__ import annotations

from conformance import package
from tests.bad import Bad
from tests.changes import (
    huge,
    link,
    linked_folder,
    other_key,
    other_statement,
    pipe,
    put,
    remove,
    rsa_key,
    text,
)
from tests.golden import (
    WITNESS,
    change_text,
    sign_again,
)

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
]
