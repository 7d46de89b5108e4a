"""Detection power: which planted faults the suite catches, and how often it cries wolf.

A catalogue is a tuple of entries with `name`, `families` and `encoder`, a class built as
`encoder(config, weights, device=..., dtype=...)`; a fault also names its `kind`, the `clause` that
must say so, and its public `source`. A harmless difference may name the clauses that it `breaks` by
what it is, which are not checked then.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import multiprocessing
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeVar

import hypothesis
import torch
from hypothesis import HealthCheck

from conformance.check import Check, all_checks
from conformance.contract import contract
from conformance.device import prepare_device
from conformance.diagnosis import Failure, explained
from conformance.driver import Driver
from conformance.options import DTYPES
from conformance.oracle import Oracle
from conformance.protocol import Interface
from conformance.search import PROFILES, Effort, Search, search, size
from conformance.trial import Trial
from reference import FAMILIES
from strategies import Case

T = TypeVar("T")

# A fault is well diagnosed if its own clause fails and at most so many others do.
OTHERS_ALLOWED = 2


@dataclass(frozen=True)
class Subject:
    """One entry of a catalogue in one family and dtype.

    Attributes:
        catalogue: `module:attribute`.
        name: of the entry.
        family: to run it in.
        dtype: to run it in.
        profile: how many cases a check.
        seed: which ones.
        quick: make only the checks of the clause that must name it.
        sharp: whether the frozen sharp cases are judged first.
        turns: make only n-th check, beginning with another one for each seed.
    """

    catalogue: str
    name: str
    family: str
    dtype: str
    profile: str
    seed: int = 0
    quick: bool = False
    sharp: bool = True
    turns: int = 1


@dataclass(frozen=True)
class Detection:
    """What the suite said of a subject.

    Attributes:
        name, kind, clause, source: of the fault; empty for a harmless difference.
        family, dtype, seed: it was run in.
        failed: clauses that failed, none of whose prerequisites failed.
        blocked: clauses that failed behind those.
        cases: judged until the first failure, in the order of the suite.
        seconds: of processor time until the first failure.
        images: of the smallest case of the named clause, or of the first that failed.
        patches: of that case.
        least: how many images the smallest case has that its check can draw.
        units: the largest error that the named clause let pass, in units of noise.
    """

    name: str
    kind: str
    clause: str
    source: str
    family: str
    dtype: str
    seed: int
    failed: tuple[str, ...]
    blocked: tuple[str, ...]
    cases: int
    seconds: float
    images: int = 0
    patches: int = 0
    least: int = 1
    units: float = 0.0

    @property
    def small(self) -> bool:
        """Whether its case has as few images as its check can draw, and at most two patches."""
        return self.images <= self.least and self.patches <= 2

    @property
    def caught(self) -> bool:
        """Whether any clause failed."""
        return bool(self.failed)

    @property
    def named(self) -> bool:
        """Whether the clause failed that must."""
        return self.clause in self.failed

    @property
    def well_diagnosed(self) -> bool:
        """Whether the fault is named and few other clauses fail."""
        return self.named and len(self.failed) <= 1 + OTHERS_ALLOWED

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)


class Planted:
    """An entry of a catalogue as an implementation."""

    version = "planted"
    interface: Interface = "items"

    def __init__(self, entry: Any) -> None:
        self.name: str = entry.name
        self.families: Collection[str] = entry.families
        self._encoder = entry.encoder

    def build(
        self,
        config: Any,
        weights: Mapping[str, torch.Tensor],
        *,
        device: torch.device,
        dtype: torch.dtype,
    ) -> Any:
        """Build the encoder; names may carry the prefix `model.`, unless that is the fault."""
        if getattr(self._encoder, "accepts_prefix", True):
            weights = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
        return self._encoder(config, weights, device=device, dtype=dtype)


def read_catalogue(spec: str) -> tuple[Any, ...]:
    """The entries of `module:attribute`.

    Raises:
        ValueError: it cannot be imported; run in a clone of the project.
    """
    module, _, attribute = spec.partition(":")
    try:
        found = tuple(getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"there is no catalogue {spec}: {error} (run this in a clone of the project)"
        ) from None
    return found


def subjects(
    spec: str,
    families: Sequence[str],
    dtypes: Sequence[str],
    profile: str,
    seeds: Sequence[int] = (0,),
    **options: Any,
) -> list[Subject]:
    """Every entry of a catalogue in each family and dtype that it has.

    Those that are given the same cases stand together, so that the oracle is asked once.

    Args:
        spec: `module:attribute` of the catalogue.
        families: to run them in.
        dtypes: to run them in.
        profile: how many cases a check.
        seeds: which ones.
        **options: other attributes of `Subject`.
    """
    entries = read_catalogue(spec)
    return [
        Subject(spec, entry.name, family, dtype, profile, seed, **options)
        for seed, dtype, family in itertools.product(seeds, dtypes, families)
        for entry in entries
        if family in entry.families and DTYPES[dtype] in getattr(entry, "dtypes", DTYPES.values())
    ]


def in_one_family(found: Sequence[Subject]) -> list[Subject]:
    """Of the subjects that differ in family alone, one: the families take turns by name."""
    groups: dict[Subject, list[Subject]] = {}
    for subject in found:
        groups.setdefault(dataclasses.replace(subject, family=""), []).append(subject)
    return [own[zlib.crc32(own[0].name.encode()) % len(own)] for own in groups.values()]


def examine(subject: Subject) -> Detection:
    """Run every check on a subject."""
    entry = next(e for e in read_catalogue(subject.catalogue) if e.name == subject.name)
    device, dtype = torch.device("cpu"), DTYPES[subject.dtype]
    prepare_device(device)
    trial = Trial(Driver(Planted(entry), device), _oracle(dtype), subject.family, dtype)
    clause, breaks = getattr(entry, "clause", ""), set(getattr(entry, "breaks", ()))
    start, cases, first = time.process_time(), 0, None
    broken: dict[str, tuple[Check, Search]] = {}
    failures: list[Failure] = []
    units = 0.0
    for check in all_checks()[subject.seed % subject.turns :: subject.turns]:
        left_out = breaks.issuperset(check.clauses) or (
            subject.quick and clause not in check.clauses
        )
        if left_out or not check.applies(subject.family, "items", "cpu"):
            continue
        shrink = clause in check.clauses and clause not in broken
        effort = Effort(PROFILES[subject.profile], subject.seed, shrink, subject.sharp)
        found = search(check, trial, effort)
        cases += found.cases
        if clause in check.clauses:
            units = max(units, found.units)
        if found.case is not None:
            first = first or (cases, time.process_time() - start)
            after = check.behind(stateful=found.stateful)
            failures.append(Failure(check.clauses, found.verdict.excess > 0, after))
            for covered in check.clauses:
                broken.setdefault(covered, (check, found))
    blocked = {clause for clause, causes in explained(failures).items() if causes}
    smallest = broken.get(clause) or next(iter(broken.values()), None)
    return Detection(
        name=entry.name,
        kind=getattr(entry, "kind", ""),
        clause=clause,
        source=getattr(entry, "source", ""),
        family=subject.family,
        dtype=subject.dtype,
        seed=subject.seed,
        failed=tuple(sorted(set(broken) - blocked)),
        blocked=tuple(sorted(blocked)),
        cases=first[0] if first else cases,
        seconds=first[1] if first else time.process_time() - start,
        units=units,
        **(_size(*smallest, trial) if smallest else {}),
    )


@functools.cache
def _oracle(dtype: torch.dtype) -> Oracle:
    """One for all subjects of a process: the same seed draws the same cases for each."""
    return Oracle(dtype, torch.device("cpu"))


def _size(check: Check, found: Search, trial: Trial) -> dict[str, int]:
    assert found.case is not None
    images = _images(found.case)
    patches = size(found.case)[1] - images
    return {"images": images, "patches": patches, "least": _least(check, trial.family, trial.dtype)}


@functools.cache
def _least(check: Check, family: str, dtype: torch.dtype) -> int:
    """The images of the smallest case that a check can draw."""
    settings = hypothesis.settings(database=None, suppress_health_check=list(HealthCheck))
    return _images(hypothesis.find(check.cases(family, dtype), lambda _: True, settings=settings))


def _images(case: Case) -> int:
    return sum(len(item.feature) if item.feature.dim() else 1 for item in case.items)


def spread(work: Callable[[Subject], T], found: Sequence[Subject], jobs: int) -> Iterator[T]:
    """What some work makes of each subject, as it comes, from several processes."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done in as_completed([pool.submit(work, subject) for subject in found]):
            yield done.result()


@dataclass(frozen=True)
class Score:
    """A catalogue's detections in one dtype, summed up.

    Attributes:
        dtype: of the detections.
        faults: detections of faults, one for each family.
        false_alarms: detections of harmless differences of which some clause failed.
        harmless: how many runs of harmless differences there were.
        harmless_cases: how many cases were judged in them.
    """

    dtype: str
    faults: tuple[Detection, ...]
    false_alarms: tuple[Detection, ...]
    harmless: int
    harmless_cases: int

    @property
    def missed(self) -> tuple[Detection, ...]:
        """Faults that no clause failed for."""
        return tuple(found for found in self.faults if not found.caught)

    @property
    def caught(self) -> float:
        """The share of faults that were caught."""
        return _share(found.caught for found in self.faults)

    @property
    def named(self) -> float:
        """The share of faults whose own clause failed."""
        return _share(found.named for found in self.faults)

    @property
    def well_diagnosed(self) -> float:
        """The share of faults whose own clause failed and few others."""
        return _share(found.well_diagnosed for found in self.faults)

    @property
    def small(self) -> float:
        """The share of caught faults whose case is as small as its check allows."""
        return _share(found.small for found in self.faults if found.caught)

    @property
    def single(self) -> float:
        """The share of caught faults whose case has one image and at most two patches."""
        return _share(f.images <= 1 and f.patches <= 2 for f in self.faults if f.caught)

    @property
    def median_seconds(self) -> float:
        """The median time of checking until a fault is caught."""
        times = sorted(found.seconds for found in self.faults if found.caught)
        return times[len(times) // 2] if times else 0.0

    @property
    def unexercised(self) -> tuple[str, ...]:
        """Clauses that no fault must be named by."""
        named = {found.clause for found in self.faults}
        return tuple(clause.id for clause in contract().clauses if clause.id not in named)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "dtype": self.dtype,
            "faults": len(self.faults),
            "caught": self.caught,
            "named": self.named,
            "well_diagnosed": self.well_diagnosed,
            "small": self.small,
            "single": self.single,
            "median_seconds": round(self.median_seconds, 2),
            "harmless_runs": self.harmless,
            "harmless_cases": self.harmless_cases,
            "false_alarms": [found.to_json() for found in self.false_alarms],
            "missed": [f"{found.name} ({found.family})" for found in self.missed],
            "unexercised": list(self.unexercised),
        }


def scores(detections: Iterable[Detection], families: Sequence[str] = FAMILIES) -> list[Score]:
    """Sum detections up by dtype."""
    found = [one for one in detections if one.family in families]
    result = []
    for dtype in dict.fromkeys(one.dtype for one in found):
        own = [one for one in found if one.dtype == dtype]
        harmless = [one for one in own if not one.clause]
        result.append(
            Score(
                dtype,
                tuple(one for one in own if one.clause),
                tuple(one for one in harmless if one.caught),
                len(harmless),
                sum(one.cases for one in harmless),
            )
        )
    return result


def _share(holds: Iterable[bool]) -> float:
    found = list(holds)
    return sum(found) / len(found) if found else 1.0
