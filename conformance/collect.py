"""Checks as pytest items: one for each family and dtype."""

from __future__ import annotations

import dataclasses
import importlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from conformance.check import Check, checks_of
from conformance.isolation.remote import driver_of
from conformance.judge import Verdict
from conformance.known import Known, match
from conformance.options import DTYPES, Options
from conformance.oracle import Oracle
from conformance.outcome import Outcome, Raised, unbuilt
from conformance.record import Record
from conformance.search import Effort, Search, search
from conformance.trial import Trial
from conformance.witness import (
    Witness,
    find_witness,
    replayed,
    witness_file,
    witnesses,
)
from reference import EncoderConfig
from strategies import Case, Weights, save_case

OPTIONS = pytest.StashKey[Options]()
BENCH = pytest.StashKey["Bench"]()


class Bench:
    """The implementation with its driver, and a trial for each family and dtype."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.driver = driver_of(options.implementation, options.device)
        self._oracles: dict[str, Oracle] = {}
        self._unbuildable: dict[tuple[str, str], str] = {}

    def trial(self, family: str, dtype: str) -> Trial:
        """The trial of a family and dtype."""
        found = DTYPES[dtype]
        if dtype not in self._oracles:
            self._oracles[dtype] = Oracle(found, self.options.noise_device)
        oracle = self._oracles[dtype]
        return Trial(self.driver, oracle, family, found, self.options.matching)

    def unbuildable(self, family: str, dtype: str) -> str:
        """Why not even the simplest encoder of a family can be built; empty if it can."""
        if (family, dtype) not in self._unbuildable:
            config = EncoderConfig.tiny(family)
            case = Case(config, Weights.drawn(config, 0), (), DTYPES[dtype])
            outcome = self.driver.run(case)
            self._unbuildable[family, dtype] = _whole(outcome) if unbuilt(outcome) else ""
        return self._unbuildable[family, dtype]


def _whole(outcome: Outcome) -> str:
    """What came instead of an encoder, with all lines of an exception's message, on one."""
    if not isinstance(outcome, Raised):
        return str(outcome)
    return f"{outcome.type}: {' / '.join(outcome.message.strip().splitlines())}"


class CheckFailed(Exception):  # noqa: N818
    """A check failed; the item's record says how."""


class CheckFile(pytest.File):
    """A module of checks."""

    def collect(self) -> Iterator[CheckItem]:
        """An item for each check, family and dtype where its clauses apply."""
        options = self.config.stash[OPTIONS]
        module = importlib.import_module(f"conformance.checks.{self.path.stem}")
        for family in options.families:
            for dtype in options.dtypes:
                for check in checks_of(module):
                    if applies(check, family, options):
                        name = f"{check.name}[{family}-{dtype}]"
                        yield CheckItem.from_parent(
                            self, name=name, check=check, family=family, dtype=dtype
                        )


def applies(check: Check, family: str, options: Options) -> bool:
    """Whether a check is to be made for a family."""
    interface, device = options.implementation.interface, options.device.type
    asked = any(clause in options.clauses for clause in check.clauses)
    return asked and check.applies(family, interface, device)


class CheckItem(pytest.Item):
    """One check for one family and dtype."""

    def __init__(self, *, check: Check, family: str, dtype: str, **other: Any) -> None:
        super().__init__(**other)
        self.check = check
        self.family = family
        self.dtype = dtype
        for clause in check.clauses:
            self.add_marker(pytest.mark.clause(clause))
            self.extra_keyword_matches.add(clause)
        self.record: Record | None = None

    def runtest(self) -> None:
        """Search for a case that fails."""
        bench = self.config.stash[BENCH]
        trial = bench.trial(self.family, self.dtype)
        start, encoders = time.perf_counter(), trial.driver.seconds + trial.oracle.seconds
        if trial.driver.given_up:
            found = self._record(status="abandoned", came=trial.driver.given_up)
        elif reason := bench.unbuildable(self.family, self.dtype):
            found = self._record(status="unbuildable", came=reason)
        else:
            found = self._search(bench.options, trial)
        self.record = dataclasses.replace(
            found,
            seconds=time.perf_counter() - start,
            encoders=trial.driver.seconds + trial.oracle.seconds - encoders,
        )
        self.user_properties.append(("conformance", self.record.to_json()))
        if self.record.status in ("failed", "known", "unbuildable", "abandoned"):
            raise CheckFailed(self.record.came)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002
        """One line for a failed check; a traceback for a fault of the suite's own."""
        if isinstance(excinfo.value, CheckFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, "short")

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it is and what it is called."""
        return self.path, None, self.name

    def _search(self, options: Options, trial: Trial) -> Record:
        entry = self._known(options)
        if entry is None:
            return self._searched(options, trial)
        if options.save_witnesses:
            return self._witnessed(options, trial, entry)
        witness = self._witness(options, entry)
        if witness is None:
            return self._searched(options, trial, entry)
        verdict = replayed(self.check, trial, witness.case)
        if verdict is not None and not verdict.passed:
            return self._replayed(options, entry, witness, verdict)
        seen = options.implementation.version in witness.kinds
        if verdict is None or entry.sometimes or not seen:
            return self._searched(options, trial, entry)
        return dataclasses.replace(self._searched(options, trial), claim="fixed")

    def _searched(self, options: Options, trial: Trial, known: Known | None = None) -> Record:
        effort = Effort(options.effort.examples, options.seed, shrink=not known)
        restarts = trial.driver.restarts
        record = self._found(options, trial, search(self.check, trial, effort), known)
        ended = trial.driver.restarts > restarts and record.status in ("failed", "known")
        return dataclasses.replace(record, printed=trial.driver.last_words) if ended else record

    def _found(self, options: Options, trial: Trial, found: Search, known: Known | None) -> Record:
        if found.refused:
            return self._record(status="refused", cases=found.cases, came=found.refused)
        if found.case is None and trial.driver.given_up:
            return self._record(status="abandoned", cases=found.cases, came=trial.driver.given_up)
        if found.case is None:
            return self._record(
                status="passed" if found.cases else "empty",
                cases=found.cases,
                left_out=found.left_out,
                units=found.units,
                notes=tuple(found.notes),
            )
        return self._failed(
            options,
            found.case,
            found.verdict,
            status="known" if known else "failed",
            known=known.what if known else "",
            cases=found.cases,
            left_out=found.left_out,
            units=found.units,
            after=self.check.behind(stateful=found.stateful),
        )

    def _failed(self, options: Options, case: Case, verdict: Verdict, **found: Any) -> Record:
        return self._record(
            error=verdict.units,
            expected=verdict.expected,
            came=verdict.came,
            where=verdict.where,
            value=verdict.excess > 0,
            kind=verdict.kind,
            case=repr(case),
            digest=case.digest,
            file=self._save(options, case, verdict),
            **found,
        )

    def _replayed(
        self, options: Options, entry: Known, witness: Witness, verdict: Verdict
    ) -> Record:
        same = verdict.kind in witness.kinds_in(options.implementation.version, entry)
        return self._failed(
            options,
            witness.case,
            verdict,
            status="known" if same else "failed",
            known=entry.what if same else "",
            claim="" if same else "different",
            cases=1,
            witness=witness.name,
        )

    def _witnessed(self, options: Options, trial: Trial, entry: Known) -> Record:
        """Replay the witnesses that there are, or else search for one; save what was seen."""
        release = options.implementation.version
        for old in witnesses(options.witnesses, self.check.name, self.family, self.dtype):
            verdict = replayed(self.check, trial, old.case)
            if verdict is not None and not verdict.passed:
                witness = old.seen(release, verdict.kind)
                return self._replayed(options, entry, witness, verdict)
            old.unseen(release)
        found = search(self.check, trial, options.effort)
        record = self._found(options, trial, found, entry)
        again = replayed(self.check, trial, found.case) if found.case is not None else None
        if found.case is None or again is None or again.passed:
            return record
        file = witness_file(options.witnesses, self.check.name, found.case)
        kinds = {release: again.kind}
        made = Witness(file, found.case, self.check.name, kinds, again.expected, again.came)
        made.save()
        return dataclasses.replace(record, witness=made.name)

    def _witness(self, options: Options, entry: Known) -> Witness | None:
        return find_witness(
            options.witnesses,
            self.check.name,
            self.family,
            self.dtype,
            options.implementation.version,
            entry,
        )

    def _known(self, options: Options) -> Known | None:
        """The entry of the first of its clauses, if all of them are known to fail."""
        entries = [
            match(options.known, clause, self.family, self.dtype) for clause in self.check.clauses
        ]
        return None if None in entries or not entries else entries[0]

    def _save(self, options: Options, case: Case, verdict: Verdict) -> str:
        folder = Path(options.failures)
        name = f"{self.check.name}-{self.family}-{self.dtype}-{case.digest[:8]}.safetensors"
        notes = {
            "check": self.check.name,
            "expected": verdict.expected,
            "came": verdict.came,
            "implementation": options.implementation.name,
            "version": options.implementation.version,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_case(case, folder / name, notes)
        except (OSError, SafetensorError) as error:
            return f"(could not be saved: {error})"
        return str(folder / name)

    def _record(self, **found: Any) -> Record:
        check = self.check
        return Record(
            check.name,
            check.sentence,
            check.clauses,
            self.family,
            self.dtype,
            **{"after": check.after, **found},
        )
