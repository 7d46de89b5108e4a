"""The pytest plugin: options, collection, and one table after the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
import torch
from rich.console import Console

from conformance.artifact import artifact
from conformance.cells import Cells
from conformance.certification import Certification
from conformance.collect import BENCH, OPTIONS, Bench, CheckFile, CheckItem
from conformance.contract import contract
from conformance.device import prepare_device
from conformance.export import export
from conformance.isolation.remote import RemoteImplementation
from conformance.machine import versions
from conformance.options import Options, add_options, cases_folder, read_options
from conformance.package import JUNIT, write_package
from conformance.protocol import Unavailable
from conformance.record import Record
from conformance.result_file import write_results
from conformance.results import Results
from conformance.search import PROFILES
from conformance.state import State, precision_flags
from conformance.table import print_results

CHECKS = Path(__file__).parent / "checks"

_LEAST_WIDTH = 100
_REFUSED_OPTIONS = 4

# A run that came to its end; a package of any other would have holes.
_ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, _REFUSED_OPTIONS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; anything wrong with them ends the run here, with status 4."""
    config.addinivalue_line("markers", "clause(id): a clause of the contract that a check covers")
    if config.option.help:
        return
    options = read_options(config)
    prepare_device(options.noise_device)
    config.stash[OPTIONS] = options
    config.stash[BENCH] = Bench(options)
    if options.certification:
        config.option.xmlpath = str(options.certification.folder / JUNIT)
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        config.stash[BENCH].driver.rest()  # xdist's workers have processes of their own
    if config.option.tbstyle == "auto":
        config.option.tbstyle = "no"  # the table and its failures say more
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Reporter(config), "conformance-reporter")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What is checked, with what, and what had to be replaced."""
    if OPTIONS not in config.stash:
        return []
    options = config.stash[OPTIONS]
    implementation = options.implementation
    header = [
        f"contract {contract().version}: {implementation.name} {implementation.version} "
        f"({implementation.interface} interface), {', '.join(options.families)}, "
        f"{', '.join(options.dtypes)} on {options.device}",
        f"profile {options.profile} ({PROFILES[options.profile]} cases a check), "
        f"seed {options.seed}, {' and '.join(options.checked)} checked, "
        f"exit status follows {options.required}",
        f"numerics: torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{_flags(precision_flags())}",
    ]
    if isinstance(implementation, RemoteImplementation):
        header += _isolated(options, implementation)
    replaced = tuple(getattr(implementation, "replacements", ()))
    if replaced:
        header.append(f"replaced to run here: {', '.join(replaced)}")
    return header


def _flags(found: State) -> str:
    return ", ".join(f"{name} {'on' if value else 'off'}" for name, value in found.items())


def _isolated(options: Options, implementation: RemoteImplementation) -> list[str]:
    """Where an isolated implementation runs, and what is measured elsewhere."""
    far, place = implementation.machine, implementation.place
    torches = versions(["torch"])["torch"], far["packages"]["torch"]
    flags = {name: far["numerics"][name] for name in precision_flags()}
    lines = [
        f"isolated: {place.spec}, {far['python']}, torch {torches[1]}, "
        f"{far['numerics']['threads']} threads, {_flags(flags)}; {place.timeout:g} s a call"
    ]
    noise = options.noise_device
    if noise != options.device or torches[0] != torches[1]:
        lines.append(
            f"noise: measured here, on {noise} with torch {torches[0]}, "
            f"not on the far side's {options.device} with torch {torches[1]}"
        )
    return lines


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process of an isolated implementation."""
    bench = config.stash.get(BENCH, None)
    if bench is not None:
        bench.driver.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect modules of checks."""
    if OPTIONS not in parent.config.stash:
        return None
    if file_path.parent == CHECKS and file_path.suffix == ".py" and file_path.stem != "__init__":
        return CheckFile.from_parent(parent, path=file_path)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Make the checks that take most cases last."""
    items.sort(key=lambda item: item.check.effort if isinstance(item, CheckItem) else 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
    call: pytest.CallInfo[None],  # noqa: ARG001
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep a failure that is known, or above the required level, from failing the run."""
    report = yield
    if isinstance(item, CheckItem) and item.record is not None and report.failed:
        options, record = item.config.stash[OPTIONS], item.record
        if record.status == "known":
            report.outcome, report.wasxfail = "skipped", f"known: {record.known}"
        elif record.status == "unbuildable":
            report.outcome, report.wasxfail = "skipped", "cannot be built"
        elif options.certification and _is_waived(record, options.certification):
            report.outcome, report.wasxfail = "skipped", "waived"
        elif record.status == "abandoned":
            report.outcome, report.wasxfail = "skipped", "given up"
        elif record.status == "failed" and not any(map(options.requires, record.clauses)):
            report.outcome, report.wasxfail = "skipped", "above the required level"
    return report


def _is_waived(record: Record, certification: Certification) -> bool:
    """Whether a waiver names each line that a failed check belongs to, and its case."""
    named = {waiver.key for waiver in certification.waivers if record.digest in waiver.witnesses}
    lines = {(clause, record.family, record.dtype) for clause in record.clauses}
    return record.status == "failed" and lines <= named


class Reporter:
    """Gathers records, from all workers, and reports on them.

    Args:
        config: of the session.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.options = config.stash[OPTIONS]
        self.records: list[Record] = []
        self.faults: list[str] = []
        self.certified = ""
        if self.options.certification:
            assert not isinstance(self.options.implementation, RemoteImplementation)
            try:  # before the run: it is these files that are certified
                self.subject = artifact(self.options.implementation)
            except Unavailable as error:
                raise pytest.UsageError(str(error)) from None
        if self.options.results:
            # A run that ends early must not leave another run's results behind.
            self.options.results.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record that a report carries, or the traceback of a fault of the suite."""
        found = dict(report.user_properties).get("conformance")
        if report.when == "call" and isinstance(found, dict):
            self.records.append(Record.from_json(found))
        elif report.failed:
            self.faults.append(f"{report.nodeid}\n{report.longreprtext}")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the exit status follow the required level."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = _REFUSED_OPTIONS
        cells = Cells(self.options, self.records)
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = self._status(cells)
        if self.options.results:
            self._write(self.options.results, cells, session.exitstatus)
        if self.options.certification and session.exitstatus in _ENDED:
            driver = session.config.stash[BENCH].driver
            complaints = [*self.faults, *self.unbuildable()]
            written = write_package(cells, driver, self.subject, complaints)
            session.exitstatus, self.certified = written.status, written.line

    def _status(self, cells: Cells) -> int:
        if self.unbuildable():
            return _REFUSED_OPTIONS
        failed = bool(self.faults) or not cells.ok()
        return pytest.ExitCode.TESTS_FAILED if failed else pytest.ExitCode.OK

    def _write(self, file: Path, cells: Cells, status: int) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        complaints = [*self.faults, *self.unbuildable(), *cells.complaints()]
        results = export(cells, file.parent, int(status), complaints)
        write_results(results, file)
        _forget_other_cases(results, file)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table and the failures."""
        writer = terminalreporter._tw
        console = Console(
            file=writer._file,
            width=max(writer.fullwidth, self.width),
            force_terminal=writer.hasmarkup,
        )
        terminalreporter.write_sep("=", "conformance")
        for fault in self.faults:
            console.print(f"a fault of the suite itself:\n{fault}", highlight=False, markup=False)
        for line in self.unbuildable():
            console.print(line, style="bold red", highlight=False, markup=False, soft_wrap=True)
        for line in self.abandoned():
            console.print(line, style="bold red", highlight=False, markup=False, soft_wrap=True)
        if not self.records and not self.faults:
            console.print("nothing to check: the options leave no check that applies")
        if self.options.results:
            line = f"results written to {self.options.results}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        judged = [record for record in self.records if record.status != "unbuildable"]
        if judged:
            print_results(console, Cells(self.options, judged))
        if self.certified:
            console.print(self.certified, highlight=False, markup=False, soft_wrap=True)

    @property
    def width(self) -> int:
        """Enough for the table to be read, on a narrow terminal or none."""
        columns = len(self.options.families) * len(self.options.dtypes)
        return max(_LEAST_WIDTH, 42 + 20 * columns)

    def abandoned(self) -> list[str]:
        """A line for each reason for which checks were not made."""
        reasons = Counter(record.came for record in self.records if record.status == "abandoned")
        return [
            f"gave {self.options.implementation.name} up: {reason}; "
            f"{checks} checks were not made or not finished"
            for reason, checks in reasons.items()
        ]

    def unbuildable(self) -> list[str]:
        """One line for each family and dtype of which no encoder can be built."""
        name = f"{self.options.implementation.name} {self.options.implementation.version}"
        lines = [
            f"{name} cannot build {record.family} in {record.dtype}: {record.came}; "
            "check another with --family and --dtype"
            for record in self.records
            if record.status == "unbuildable"
        ]
        return list(dict.fromkeys(lines))


def _forget_other_cases(results: Results, file: Path) -> None:
    """Remove cases that an earlier run saved for a result file of the same name."""
    own = {file.parent / finding.file for line in results.lines for finding in line.checks}
    for saved in cases_folder(file).glob("*.safetensors"):
        if saved not in own:
            saved.unlink()
