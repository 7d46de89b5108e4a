"""The certification profile: what a run for a certificate checks, and what may not change it."""

from __future__ import annotations

import datetime
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.challenge import NONCE_FORM, is_nonce
from conformance.contract import LEVELS, Level
from conformance.trial import Matching
from conformance.waivers import Waiver, WaiverError, read_waivers

# The frozen profile. Its number of cases stands in `search.PROFILES`, which the suite's own tests
# lower, since no option does.
PROFILE = "certify"
SEED = 0
MATCHING: Matching = "type"
REQUIRED: Level = "core"
CHECKED = LEVELS

# Options that change what is checked, or what is written where; with the name and the value that
# they have when nobody gives them.
_REFUSED: tuple[tuple[str, str, object], ...] = (
    ("--family", "family", None),
    ("--level", "level", None),
    ("--clause", "clause", None),
    ("--profile", "profile", "standard"),
    ("--seed", "seed", 0),
    ("--error-match", "error_match", "type"),
    ("--known", "known", None),
    ("--no-known", "no_known", False),
    ("--save-witnesses", "save_witnesses", False),
    ("--failures", "failures", None),
    ("--results", "results", None),
    ("-k", "keyword", ""),
    ("-m", "markexpr", ""),
    ("--deselect", "deselect", None),
    ("--ignore", "ignore", None),
    ("--ignore-glob", "ignore_glob", None),
    ("-x/--exitfirst/--maxfail", "maxfail", 0),
    ("--lf/--last-failed", "lf", False),
    ("--sw/--stepwise", "stepwise", False),
    ("--collect-only/--co", "collectonly", False),
    ("--junitxml/--junit-xml", "xmlpath", None),
)

# The digest of the files and the environment are those of the suite's own interpreter.
_ELSEWHERE = (("--python", "python"), ("--gateway", "gateway"))

_EXTRA = ("cryptography", "jsonschema", "matplotlib", "securesystemslib")

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Certification:
    """What a run for a certificate needs beside the frozen profile.

    Attributes:
        folder: that the package is written to.
        challenge: the verifier's nonce.
        waivers: of failures.
        waivers_file: what they were read from; empty for none.
    """

    folder: Path
    challenge: str
    waivers: tuple[Waiver, ...]
    waivers_file: bytes


def read_certification(config: pytest.Config) -> Certification | None:
    """The certification that a run was asked for, None if it was not.

    Raises:
        pytest.UsageError: one line that says what to do.
    """
    given, nonce = config.getoption("--certify"), config.getoption("--challenge")
    waivers = config.getoption("--waivers")
    if given is None:
        if stray := "--challenge" if nonce else "--waivers" if waivers else None:
            raise pytest.UsageError(f"{stray} belongs to a certificate; add --certify=DIR")
        return None
    if nonce is None or not is_nonce(nonce):
        given_one = (
            f"--challenge={nonce} is no nonce" if nonce else "--challenge is missing: no nonce"
        )
        raise pytest.UsageError(f"{given_one}; ask your verifier for one, {NONCE_FORM}")
    folder = Path(given).absolute()
    if not hasattr(config, "workerinput"):
        if missing := missing_extra():
            raise pytest.UsageError(missing)
        _require_frozen(config)
        _require_empty(folder)
    return Certification(folder, nonce, *_waivers(waivers))


def missing_extra() -> str:
    """What must be installed for certificates, in one line; empty if nothing must."""
    missing = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if not missing:
        return ""
    return f"certificates need {', '.join(missing)}; pip install -e '.[certify]'"


def _require_frozen(config: pytest.Config) -> None:
    said = [argument.partition("=")[0] for argument in config.invocation_params.args]
    for names, attribute, default in _REFUSED:
        changed = (getattr(config.option, attribute, default) or default) != default
        if changed or any(name in said for name in names.split("/")):
            raise pytest.UsageError(
                f"{names} cannot be given with --certify: it changes what is checked or written, "
                "and a certificate is of the frozen profile"
            )
    for name, attribute in _ELSEWHERE:
        if getattr(config.option, attribute, None) is not None:
            raise pytest.UsageError(
                f"{name} cannot be given with --certify: install the suite beside the "
                "implementation, whose files and environment are certified too"
            )
    if [Path(argument).resolve() for argument in config.args] != [_HERE]:
        raise pytest.UsageError("a certificate is of all checks: pytest conformance --certify=DIR")


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise pytest.UsageError(f"--certify={folder} is there and not empty; name a new folder")


def _waivers(given: str | None) -> tuple[tuple[Waiver, ...], bytes]:
    if given is None:
        return (), b""
    try:
        data = Path(given).read_bytes()
        found = read_waivers(data)
    except OSError as error:
        raise pytest.UsageError(f"cannot read the waivers {given}: {error.strerror}") from None
    except WaiverError as error:
        raise pytest.UsageError(f"{given}: {error}") from None
    today = datetime.datetime.now(tz=datetime.UTC).date()
    for waiver in found:
        reason = waiver.too_wide() or ("it has expired" if waiver.expires < today else "")
        if reason:
            raise pytest.UsageError(f"{given}: the waiver of {waiver} cannot be used: {reason}")
    return found, data
