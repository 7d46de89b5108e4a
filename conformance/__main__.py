"""`python -m conformance`: the contract, the implementations, and replays."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import get_args

import click
import pytest
from rich.console import Console
from rich.table import Table

from conformance.calibration import comfortable, compared, read
from conformance.check import Check, all_checks
from conformance.contract import contract
from conformance.corpus import write_corpus
from conformance.device import nearest_device, prepare_device
from conformance.diff import changes, warnings
from conformance.isolation.gateway import find_place
from conformance.isolation.remote import driver_of, find_anywhere
from conformance.matrix import read_matrix
from conformance.notary import keygen, sign, verify
from conformance.options import DTYPES
from conformance.oracle import Oracle
from conformance.page import Place, badge, markdown, page
from conformance.power import Detection, examine, in_one_family, scores, spread, subjects
from conformance.power_report import markdown as power_markdown
from conformance.power_report import summary, write_json
from conformance.protocol import Interface, Unavailable
from conformance.registry import BUILT_IN, find_implementation, published
from conformance.result_file import ResultsError, read_results
from conformance.search import PROFILES, confirmed
from conformance.sharpening import sharpest
from conformance.starter import StarterError, write_starter
from conformance.trial import LeftOut, NotOffered, Trial
from reference import FAMILIES
from strategies import load_case


@click.group()
def main() -> None:
    """Conformance of Step3-VL vision encoders; `pytest conformance --impl=NAME` is the main job."""


for command in (keygen, sign, verify):
    main.add_command(command)


@main.command()
def clauses() -> None:
    """List the clauses of the contract and the checks that cover them."""
    checks = all_checks()
    table = Table(title=f"contract {contract().version}", show_lines=True)
    for heading in ("id", "level", "rule", "checks"):
        table.add_column(heading, no_wrap=heading in ("id", "level"))
    for clause in contract().clauses:
        names = [check.name for check in checks if clause.id in check.clauses]
        table.add_row(clause.id, clause.level, clause.rule, "\n".join(names))
    Console(width=max(Console().width, 120)).print(table)


@main.command()
def implementations() -> None:
    """List the implementations that can be named, and which of them are installed."""
    for name in sorted({*BUILT_IN, *published()}):
        try:
            found = find_implementation(name)
        except Unavailable as reason:
            click.echo(f"{name}: {reason}")
        else:
            families = ", ".join(found.families)
            click.echo(f"{name}: {found.version}, {found.interface} interface, {families}")


@main.command()
@click.argument("name")
@click.option(
    "--family",
    "families",
    multiple=True,
    type=click.Choice(FAMILIES),
    default=["step3-vl-10b"],
    show_default=True,
    help="repeatable",
)
@click.option(
    "--interface",
    type=click.Choice(get_args(Interface)),
    default="items",
    show_default=True,
    help="what your encoder takes: a list of items, or flat tensors for one request",
)
def init(name: str, families: tuple[str, ...], interface: Interface) -> None:
    """Write a commented adapter NAME.py for your own encoder, which runs at once."""
    try:
        file = write_starter(Path(), name, tuple(dict.fromkeys(families)), interface)
    except StarterError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"wrote {file}; the reference answers until you put your encoder in its place:")
    click.echo(f"  pytest conformance --impl={file}:{name} --profile=smoke")


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--impl", required=True, metavar="NAME", help="the implementation")
@click.option("--device", default="cpu", show_default=True, help="a torch device")
@click.option("--python", metavar="PATH", help="run it in another interpreter")
@click.option("--gateway", metavar="SPEC", help="run it through an execnet gateway")
@click.option("--timeout", default=60.0, show_default=True, help="seconds of a call there")
@click.option("--check", "check_name", help="another check than the one that saved the case")
def replay(
    file: str,
    impl: str,
    device: str,
    python: str | None,
    gateway: str | None,
    timeout: float,
    check_name: str | None,
) -> None:
    """Run a saved case again; the exit status is 1 if it still fails."""
    try:
        case, notes = load_case(file)
        place = find_place(python, gateway, timeout=timeout, restarts=20)
        implementation, where = find_anywhere(impl, place, device)
        check = _check(check_name or notes.get("check"))
    except (ValueError, Unavailable, pytest.UsageError) as error:
        raise click.UsageError(str(error)) from None
    noise_device = nearest_device(where)
    prepare_device(noise_device)
    driver = driver_of(implementation, where)
    trial = Trial(driver, Oracle(case.dtype, noise_device), case.config.family, case.dtype)
    click.echo(f"{check.name}: {check.sentence}")
    click.echo(f"  case      {case!r}")
    click.echo(f"  on        {implementation.name} {implementation.version}, {where}")
    try:
        verdict = confirmed(check, trial, case)
    except (LeftOut, NotOffered) as reason:
        click.echo(f"  says nothing here: {reason or 'the reference overflows'}")
        return
    for name in ("expected", "came", "where"):
        if getattr(verdict, name):
            click.echo(f"  {name:9} {getattr(verdict, name)}")
    if not verdict.passed and driver.last_trace:
        click.echo(f"the last words of the implementation:\n{driver.last_trace}")
    click.echo("  passed" if verdict.passed else "  FAILED")
    sys.exit(0 if verdict.passed else 1)


@main.command()
@click.option("--faults", default="tests.faults:FAULTS", show_default=True, help="a catalogue")
@click.option(
    "--harmless", default="tests.harmless:DIFFERENCES", show_default=True, help="a catalogue"
)
@click.option("--impl-family", multiple=True, type=click.Choice(FAMILIES), help="repeatable")
@click.option(
    "--dtype",
    multiple=True,
    type=click.Choice(list(DTYPES)),
    default=["float32"],
    help="repeatable",
)
@click.option("--profile", type=click.Choice(list(PROFILES)), default="smoke", show_default=True)
@click.option("--seeds", default=1, show_default=True, help="seeds for each harmless difference")
@click.option("--only", help="names that contain this text")
@click.option("--quick", is_flag=True, help="make only the checks of each fault's own clause")
@click.option("--drawn", is_flag=True, help="leave the frozen sharp cases out")
@click.option("--once", is_flag=True, help="run each in one of its families")
@click.option("--alarms", is_flag=True, help="run harmless differences only")
@click.option("--turns", default=1, show_default=True, help="a seed makes each N-th check only")
@click.option("--jobs", default=2, show_default=True, help="processes")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="write everything")
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="write a table")
def power(
    faults: str,
    harmless: str,
    impl_family: tuple[str, ...],
    dtype: tuple[str, ...],
    profile: str,
    seeds: int,
    only: str | None,
    quick: bool,
    drawn: bool,
    once: bool,
    alarms: bool,
    turns: int,
    jobs: int,
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Run planted faults and harmless differences; the exit status is 1 if one is misjudged."""
    families = impl_family or FAMILIES
    try:
        found = []
        if not alarms:
            found += subjects(faults, families, dtype, profile, quick=quick, sharp=not drawn)
        if not quick:
            every = range(seeds)
            found += subjects(
                harmless, families, dtype, profile, every, sharp=not drawn, turns=turns
            )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found = [subject for subject in found if only is None or only in subject.name]
    found = in_one_family(found) if once else found
    detections = []
    for done in spread(examine, found, jobs):
        detections.append(done)
        click.echo(f"{len(detections)}/{len(found)} {_line(done)}")
    results = scores(detections)
    click.echo("\n".join(["", *summary(results)]))
    if json_file:
        write_json(json_file, results, detections)
    if markdown_file:
        markdown_file.write_text(power_markdown(results, detections), encoding="utf-8")
    sys.exit(1 if any(score.missed or score.false_alarms for score in results) else 0)


@main.command()
@click.argument("family", type=click.Choice(FAMILIES))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--faults", default="tests.faults:FAULTS", show_default=True, help="a catalogue")
def corpus(family: str, folder: Path, faults: str) -> None:
    """Choose the frozen sharp cases of a FAMILY anew, and write them to FOLDER."""
    try:
        found = sharpest(faults, family)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    file = folder / f"{family}.safetensors"
    write_corpus(found, file)
    click.echo(f"{file}: {len(found)} cases, {file.stat().st_size / 1e6:.1f} MB")


@main.command()
@click.option(
    "--harmless", default="tests.harmless:DIFFERENCES", show_default=True, help="a catalogue"
)
@click.option("--dtype", multiple=True, type=click.Choice(list(DTYPES)), default=list(DTYPES))
@click.option("--profile", type=click.Choice(list(PROFILES)), default="smoke", show_default=True)
@click.option("--seeds", default=3, show_default=True, help="seeds for each difference")
@click.option("--jobs", default=2, show_default=True, help="processes")
def calibrate(harmless: str, dtype: tuple[str, ...], profile: str, seeds: int, jobs: int) -> None:
    """Measure how near right encoders come to the limits; the exit status is 1 past half of one."""
    try:
        found = subjects(harmless, FAMILIES, dtype, profile, range(seeds))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    readings = list(spread(read, found, jobs))
    click.echo("\n".join(compared(readings)))
    sys.exit(0 if all(comfortable(reading) for reading in readings) else 1)


@main.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="the page; default: matrix.html in the folder"
)
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="a short table")
@click.option("--badge", "badge_file", type=click.Path(path_type=Path), help="an SVG")
@click.option("--date", help="that the page bears; default: today")
def matrix(
    folder: Path,
    out: Path | None,
    markdown_file: Path | None,
    badge_file: Path | None,
    date: str | None,
) -> None:
    """Merge the result files (*.jsonl) of a folder into one static page."""
    try:
        found = read_matrix(folder)
    except ResultsError as error:
        raise click.UsageError(str(error)) from None
    out = out or folder / "matrix.html"
    date = date or datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    written = {out: page(found, Place(out.parent, date))}
    if markdown_file:
        written[markdown_file] = markdown(found, Place(markdown_file.parent, date))
    if badge_file:
        written[badge_file] = badge(found)
    for file, text in written.items():
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"cannot write {file}: {error.strerror}") from None
        click.echo(f"{file}: {len(text.encode()):,} bytes")


@main.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def diff(before: Path, after: Path) -> None:
    """Say what changed between two result files.

    Verdicts that differ, and errors that moved by more than a factor of two. The exit status is 0
    if nothing changed, 1 if something did, and 2 if a file cannot be used.
    """
    try:
        one, other = read_results(before), read_results(after)
    except ResultsError as error:
        raise click.UsageError(str(error)) from None
    for warning in warnings(one, other):
        click.echo(f"not made alike: {warning}", err=True)
    found = changes(one, other)
    for change in found:
        click.echo(change)
    sys.exit(1 if found else 0)


def _line(found: Detection) -> str:
    where = f"{found.family} {found.dtype}"
    failed = ", ".join(found.failed) or "nothing failed"
    blocked = f" (blocked: {', '.join(found.blocked)})" if found.blocked else ""
    if not found.clause:
        return f"harmless: {found.name}, {where}, seed {found.seed}: {failed}{blocked}"
    verdict = "named" if found.named else "caught" if found.caught else "MISSED"
    spent = f"{found.cases} cases, {found.seconds:.1f} s"
    return f"{verdict}: {found.name}, {where}: {failed}{blocked} [{found.clause}; {spent}]"


def _check(name: str | None) -> Check:
    for check in all_checks():
        if check.name == name:
            return check
    raise ValueError(f"there is no check {name!r}; name one with --check")


if __name__ == "__main__":
    main(prog_name="python -m conformance")
