"""The options of a run, checked."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from conformance import certification as frozen
from conformance.certification import Certification, read_certification
from conformance.contract import LEVELS, Level, contract
from conformance.device import nearest_device
from conformance.dtypes import DTYPES as DTYPES
from conformance.isolation.gateway import Place, find_place
from conformance.isolation.remote import AnyImplementation, RemoteImplementation, find_anywhere
from conformance.known import Known, KnownError, read_known, witness_folder
from conformance.protocol import Unavailable
from conformance.search import PROFILES, Effort
from conformance.trial import Matching


@dataclass(frozen=True)
class Options:
    """What a run checks, and how hard.

    Attributes:
        spec: the implementation as the user named it.
        implementation: under test.
        families: to check.
        device: of the models.
        noise_device: where noise is measured; another than `device` if that is not here.
        dtypes: of the models, by name.
        checked: levels that are checked.
        required: the level that the exit status follows.
        clauses: ids to check.
        asked: whether they were asked for by name, and so are all required.
        profile: how many cases a check.
        seed: which ones.
        matching: of documented errors.
        known: failures that count as known.
        known_from: `own` for the suite's, `none`, or the name of another file.
        witnesses: the folder of the witnesses of known failures.
        save_witnesses: whether to make them.
        failures: the folder that failing cases are saved in.
        results: the file that the results are written to, None for none.
        certification: what a run for a certificate needs, None for any other.
    """

    spec: str
    implementation: AnyImplementation
    families: tuple[str, ...]
    device: torch.device
    noise_device: torch.device
    dtypes: tuple[str, ...]
    checked: tuple[Level, ...]
    required: Level
    clauses: tuple[str, ...]
    asked: bool
    profile: str
    seed: int
    matching: Matching
    known: tuple[Known, ...]
    known_from: str
    witnesses: Path
    save_witnesses: bool
    failures: str
    results: Path | None
    certification: Certification | None = None

    @property
    def effort(self) -> Effort:
        """How hard to search."""
        return Effort(PROFILES[self.profile], self.seed)

    @property
    def again(self) -> str:
        """The options that name the implementation to `python -m conformance replay`."""
        found = f"--impl={self.spec}"
        if isinstance(self.implementation, RemoteImplementation):
            place = self.implementation.place
            found += f" --gateway={place.spec} --timeout={place.timeout:g}"
        return found if self.device.type == "cpu" else f"{found} --device={self.device}"

    def requires(self, clause: str) -> bool:
        """Whether the exit status follows a clause."""
        required = any(found.id == clause for found in contract().required(self.required))
        return clause in self.clauses and (required or self.asked)


def add_options(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("conformance", "Step3-VL conformance")
    group.addoption(
        "--impl",
        metavar="NAME",
        help="the implementation: a built-in name, an entry point, module:attribute or "
        "path/to/file.py:attribute",
    )
    group.addoption(
        "--python",
        metavar="PATH",
        help="run the implementation in another interpreter, such as another environment's",
    )
    group.addoption(
        "--gateway",
        metavar="SPEC",
        help="run it through an execnet gateway, such as ssh=HOST//python=python3",
    )
    group.addoption(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="of a call in another interpreter; default: 60",
    )
    group.addoption(
        "--restarts",
        type=int,
        default=20,
        metavar="N",
        help="give up after N restarts of the other interpreter in a row without an answer, or "
        "20 times as many in all; default: 20",
    )
    group.addoption(
        "--family",
        action="append",
        metavar="FAMILY",
        help="a family to check; repeatable; default: all that the implementation declares",
    )
    group.addoption("--device", default="cpu", help="a torch device; default: cpu")
    group.addoption(
        "--dtype",
        action="append",
        choices=tuple(DTYPES),
        help="a dtype of the models; repeatable; default: float32",
    )
    group.addoption(
        "--level",
        choices=LEVELS,
        help="check the clauses up to this level and let the exit status follow it; "
        "default: check core and strict, follow core",
    )
    group.addoption(
        "--clause",
        action="append",
        metavar="ID",
        help="a clause to check and require, such as LA-02; repeatable; default: all of the level",
    )
    group.addoption(
        "--profile",
        choices=tuple(PROFILES),
        default="standard",
        help="cases a check: smoke 2, standard 10, certify 50; default: standard",
    )
    group.addoption(
        "--seed", type=int, default=0, metavar="N", help="which cases are drawn; default: 0"
    )
    group.addoption(
        "--error-match",
        choices=("kind", "type", "message"),
        default="type",
        help="documented errors: any error will do, a ValueError, or the exact message too",
    )
    group.addoption("--known", metavar="FILE", help="known failures, instead of the suite's own")
    group.addoption("--no-known", action="store_true", help="count no failure as known")
    group.addoption(
        "--save-witnesses",
        action="store_true",
        help="save the smallest case of each known failure, to be replayed by later runs",
    )
    group.addoption(
        "--failures",
        metavar="DIR",
        help="where failing cases are saved; default: conformance-failures, "
        "or FILE-cases with --results=FILE.jsonl",
    )
    group.addoption(
        "--results",
        metavar="FILE",
        help="write everything that was found as JSON lines, with the failing cases beside it",
    )
    group.addoption(
        "--certify",
        metavar="DIR",
        help="check all clauses in the frozen profile `certify` and write a package that others "
        "can verify; options that change what is checked are refused",
    )
    group.addoption(
        "--challenge",
        metavar="NONCE",
        help="of the verifier, with --certify: the cases whose results are kept as witnesses",
    )
    group.addoption(
        "--waivers", metavar="FILE", help="with --certify: failures that the certificate excuses"
    )


def read_options(config: pytest.Config) -> Options:
    """Check the options of a run.

    Raises:
        pytest.UsageError: one line that says what to do.
    """
    spec = config.getoption("--impl")
    if not spec:
        raise pytest.UsageError(
            "say which implementation to check, such as --impl=reference or --impl=sglang "
            "(python -m conformance implementations lists them)"
        )
    certification = read_certification(config)
    try:
        implementation, device = find_anywhere(spec, _place(config), config.getoption("--device"))
        known = _known(config, implementation)
    except (Unavailable, KnownError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    level = config.getoption("--level")
    required: Level = level or "core"
    checked = LEVELS[: LEVELS.index(level or "strict") + 1]
    results = _results(config)
    options = Options(
        spec=spec,
        implementation=implementation,
        families=_families(config, implementation),
        device=device,
        noise_device=nearest_device(device),
        dtypes=tuple(dict.fromkeys(config.getoption("--dtype") or ["float32"])),
        checked=checked,
        required=required,
        clauses=_clauses(config, checked),
        asked=bool(config.getoption("--clause")),
        profile=config.getoption("--profile"),
        seed=config.getoption("--seed"),
        matching=config.getoption("--error-match"),
        known=tuple(k for k in known if k.covers(implementation.version, device.type)),
        known_from=_known_from(config),
        witnesses=_witnesses(config, implementation),
        save_witnesses=config.getoption("--save-witnesses"),
        failures=_failures(config, results),
        results=results,
    )
    return options if certification is None else _frozen(options, certification)


def _frozen(options: Options, certification: Certification) -> Options:
    """The options of a run for a certificate, whose profile nobody chooses."""
    failures = certification.folder / "failures"
    _require_writable(failures, f"a package cannot be written to {certification.folder}")
    return dataclasses.replace(
        options,
        checked=frozen.CHECKED,
        required=frozen.REQUIRED,
        clauses=tuple(clause.id for clause in contract().clauses),
        profile=frozen.PROFILE,
        seed=frozen.SEED,
        matching=frozen.MATCHING,
        known=(),
        known_from="none",
        failures=str(failures),
        certification=certification,
    )


def _place(config: pytest.Config) -> Place | None:
    return find_place(
        config.getoption("--python"),
        config.getoption("--gateway"),
        timeout=config.getoption("--timeout"),
        restarts=config.getoption("--restarts"),
        processes=int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")),
    )


def _results(config: pytest.Config) -> Path | None:
    given = config.getoption("--results")
    if given is None:
        return None
    file = Path(given)
    if file.is_dir():
        raise pytest.UsageError(f"--results={given} is a folder; name a file")
    _require_writable(file.parent, f"results cannot be written to {file}")
    return file


def cases_folder(results: Path) -> Path:
    """The folder of the saved cases that belong to a result file, beside it."""
    return results.with_name(f"{results.stem}-cases")


def _failures(config: pytest.Config, results: Path | None) -> str:
    given = config.getoption("--failures")
    if results is not None and given is not None:
        raise pytest.UsageError(
            f"--failures={given} and --results={results}: failing cases are saved beside the "
            "results; leave --failures out"
        )
    default = cases_folder(results) if results else "conformance-failures"
    folder = str(given or default)
    _require_writable(Path(folder), f"failures cannot be saved in {folder}")
    return folder


def _require_writable(folder: Path, otherwise: str) -> None:
    nearest = folder.absolute()
    while not nearest.exists():
        nearest = nearest.parent
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise pytest.UsageError(f"{otherwise}: {nearest} is not writable")


def _known(config: pytest.Config, implementation: AnyImplementation) -> tuple[Known, ...]:
    if config.getoption("--no-known"):
        return ()
    return read_known(implementation.name, config.getoption("--known"))


def _known_from(config: pytest.Config) -> str:
    if config.getoption("--no-known"):
        return "none"
    file = config.getoption("--known")
    return Path(file).name if file else "own"


def _witnesses(config: pytest.Config, implementation: AnyImplementation) -> Path:
    folder = witness_folder(implementation.name, config.getoption("--known"))
    if config.getoption("--save-witnesses"):
        if config.getoption("--no-known"):
            raise pytest.UsageError(
                "--save-witnesses is about known failures: leave --no-known out"
            )
        _require_writable(folder, f"witnesses cannot be saved in {folder}")
    return folder


def _families(config: pytest.Config, implementation: AnyImplementation) -> tuple[str, ...]:
    declared = tuple(implementation.families)
    asked = tuple(dict.fromkeys(config.getoption("--family") or declared))
    for family in asked:
        if family not in declared:
            raise pytest.UsageError(
                f"{implementation.name} {implementation.version} has no family {family!r}; "
                f"it has {', '.join(declared)}"
            )
    return asked


def _clauses(config: pytest.Config, checked: tuple[Level, ...]) -> tuple[str, ...]:
    within = tuple(clause.id for clause in contract().clauses if clause.level in checked)
    asked = tuple(clause.upper() for clause in config.getoption("--clause") or within)
    for clause in asked:
        if clause not in contract():
            raise pytest.UsageError(
                f"the contract has no clause {clause!r} (python -m conformance clauses lists them)"
            )
    return asked
