"""What a run found, as values: a header, a line for each clause, family and dtype, a footer."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal, Self

from conformance.contract import Level

# Clause, family and dtype: what a line is found by.
Key = tuple[str, str, str]

Verdict = Literal["passed", "failed", "known", "blocked", "not checked"]

VERDICTS: tuple[Verdict, ...] = ("passed", "failed", "known", "blocked", "not checked")

_INFINITY = "infinity"


@dataclass(frozen=True)
class Part:
    """A part of a file: JSON values by name, a field that is empty left out where it may be."""

    def to_json(self) -> dict[str, Any]:
        """As JSON values; infinity, which JSON lacks, as a word."""
        fields = {field.name: field for field in dataclasses.fields(self)}
        values = {name: getattr(self, name) for name in fields}
        return {
            name: _to_json(value)
            for name, value in values.items()
            if fields[name].default is MISSING or value != fields[name].default
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """From JSON values.

        Raises:
            ValueError: a field is missing or unknown.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        missing = [n for n, f in fields.items() if n not in values and f.default is MISSING]
        surplus = [name for name in values if name not in fields]
        if missing or surplus:
            what = f"lacks {missing[0]!r}" if missing else f"has an unknown field {surplus[0]!r}"
            raise ValueError(f"the {cls.__name__.lower()} {what}")
        return cls(**{name: _from_json(name, value) for name, value in values.items()})


@dataclass(frozen=True)
class Suite(Part):
    """The suite that made a run.

    Attributes:
        version: of its distribution.
        commit: of its checkout; None outside of one.
        clean: whether its code was as committed; None outside of a checkout.
    """

    version: str
    commit: str | None
    clean: bool | None


@dataclass(frozen=True)
class Subject(Part):
    """The implementation under test.

    Attributes:
        spec: as the user named it.
        name, version, interface: as it declares them.
        families: that it declares, whether or not they were checked.
        replacements: what had to be replaced to run here.
    """

    spec: str
    name: str
    version: str
    interface: str
    families: tuple[str, ...]
    replacements: tuple[str, ...]


@dataclass(frozen=True)
class Settings(Part):
    """The options of a run.

    Attributes:
        device: of the models.
        dtypes, families, levels: that were checked.
        required: the level that the exit status follows.
        clauses: asked for by name; empty for all of the levels.
        profile: how hard was searched.
        examples: cases a check in that profile.
        seed: which cases were drawn.
        error_match: how documented errors were compared.
        known: `own` for the suite's known failures, `none`, or the name of another file.
    """

    device: str
    dtypes: tuple[str, ...]
    families: tuple[str, ...]
    levels: tuple[str, ...]
    required: str
    clauses: tuple[str, ...]
    profile: str
    examples: int
    seed: int
    error_match: str
    known: str


@dataclass(frozen=True)
class Environment(Part):
    """The machine and the packages of a run.

    Attributes:
        python: implementation and version.
        platform: system, release and machine.
        processor: the accelerator's name, or the CPU's architecture and vector extension.
        packages: versions of torch, NumPy, Hypothesis, safetensors, and of the implementation's
            distribution with what it requires, by name.
        numerics: threads and the flags that decide about rounding, by name.
        near: versions in the suite's own process, if the implementation ran in another one.
    """

    python: str
    platform: str
    processor: str
    packages: Mapping[str, str]
    numerics: Mapping[str, Any]
    near: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Header(Part):
    """The first line.

    Attributes:
        contract: its version.
        suite: that made the run.
        implementation: under test.
        settings: of the run.
        environment: of the run.
        limits: the limits of each dtype, in units of noise, `row` and `element`.
    """

    contract: str
    suite: Suite
    implementation: Subject
    settings: Settings
    environment: Environment
    limits: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class KnownFailure(Part):
    """An entry of the known failures that a line falls under."""

    what: str
    link: str
    releases: str


@dataclass(frozen=True)
class Finding(Part):
    """What one check found.

    Attributes:
        check: its name.
        status: `passed`, `failed`, `known`, `empty` if every drawn case was left out, `refused` if
            the implementation refuses a configuration that no checkpoint has, or `unbuildable`.
        cases: judged.
        left_out: drawn, but saying nothing because the reference overflows in the dtype.
        units: the largest error of those that passed, in units of noise.
        error: of the failing case, in units of noise; 0 where that is not the question.
        sentence: what the check holds; of a failure only, as all that follows.
        kind: the type of the exception, `values`, or `behaviour`, that made it fail.
        expected, came, where: in the failing case.
        stateful: whether it fails only after earlier calls on the same encoder.
        case: the failing one on one line.
        digest: of the failing case.
        file: the failing case, relative to the result file.
        witness: the witness of a known failure that it is, in the suite's folder of known failures.
        notes: of the cases that passed.
    """

    check: str
    status: str
    cases: int = 0
    left_out: int = 0
    units: float = 0.0
    error: float = 0.0
    sentence: str = ""
    kind: str = ""
    expected: str = ""
    came: str = ""
    where: str = ""
    stateful: bool = False
    case: str = ""
    digest: str = ""
    file: str = ""
    witness: str = ""
    notes: tuple[str, ...] = ()

    @property
    def bad(self) -> bool:
        """Whether the check failed, known to or not."""
        return self.status in ("failed", "known")


@dataclass(frozen=True)
class Line(Part):
    """A clause for one family and dtype.

    Attributes:
        clause, level, family, dtype: which.
        applies: whether there is anything to check there.
        required: whether the exit status follows it.
        complete: whether all of its checks were made.
        verdict: what became of it.
        reason: why it was not checked; else empty.
        blocked_by: the failed clauses that may explain it.
        cases, left_out: of its checks together.
        worst: the largest error, in units of noise, of all its cases; 0 where nothing was measured.
        known: the entries of the known failures that it falls under.
        checks: what each of its checks found.
    """

    clause: str
    level: Level
    family: str
    dtype: str
    applies: bool
    required: bool
    complete: bool
    verdict: Verdict
    reason: str
    blocked_by: tuple[str, ...]
    cases: int
    left_out: int
    worst: float
    known: tuple[KnownFailure, ...]
    checks: tuple[Finding, ...]

    @property
    def key(self) -> Key:
        """Clause, family and dtype: what it is found by."""
        return self.clause, self.family, self.dtype

    @property
    def bad(self) -> bool:
        """Whether it failed, for whatever reason and known to or not."""
        return self.verdict in ("failed", "known", "blocked")

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that failed, known to or not."""
        return tuple(finding for finding in self.checks if finding.bad)


def totals(checks: Iterable[Finding]) -> tuple[int, int, float]:
    """What a line says of its checks together: `cases`, `left_out` and `worst`."""
    found = list(checks)
    return (
        sum(finding.cases for finding in found),
        sum(finding.left_out for finding in found),
        max((max(finding.units, finding.error) for finding in found), default=0.0),
    )


@dataclass(frozen=True)
class Footer(Part):
    """The last line.

    Attributes:
        status: the exit status of the run.
        lines: how many stand between header and footer.
        verdicts: how many of each.
        complaints: what failed the run beside its clauses, such as known failures that are gone.
    """

    status: int
    lines: int
    verdicts: Mapping[str, int]
    complaints: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """The content of a result file."""

    header: Header
    lines: tuple[Line, ...]
    footer: Footer

    @classmethod
    def of(
        cls, header: Header, lines: Iterable[Line], status: int, complaints: Iterable[str] = ()
    ) -> Results:
        """Results with the footer that belongs to them."""
        lines = tuple(lines)
        counts = Counter(line.verdict for line in lines)
        verdicts: dict[str, int] = {verdict: counts[verdict] for verdict in VERDICTS}
        return cls(header, lines, Footer(status, len(lines), verdicts, tuple(complaints)))


_PARTS: dict[str, type[Part]] = {
    "suite": Suite,
    "implementation": Subject,
    "settings": Settings,
    "environment": Environment,
    "known": KnownFailure,
    "checks": Finding,
}


def _to_json(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_json()
    if isinstance(value, tuple):
        return [_to_json(entry) for entry in value]
    return _INFINITY if isinstance(value, float) and math.isinf(value) else value


def _from_json(name: str, value: Any) -> Any:
    part = _PARTS.get(name)
    if isinstance(value, list):
        made = [part.from_json(v) for v in value] if part and name in ("known", "checks") else value
        return tuple(made)
    if part is not None and isinstance(value, dict):
        return part.from_json(value)
    return math.inf if value == _INFINITY and name in ("units", "error", "worst") else value
