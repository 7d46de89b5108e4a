"""`python -m conformance`: the contract, the implementations, and replays."""

from __future__ import annotations

import sys

import click
import pytest
from rich.console import Console
from rich.table import Table

from conformance.check import Check, all_checks
from conformance.collect import prepare_device
from conformance.contract import contract
from conformance.driver import Driver
from conformance.options import find_device
from conformance.oracle import Oracle
from conformance.protocol import Unavailable
from conformance.registry import BUILT_IN, find_implementation, published
from conformance.search import confirmed
from conformance.trial import LeftOut, NotOffered, Trial
from strategies import load_case


@click.group()
def main() -> None:
    """Conformance of Step3-VL vision encoders; `pytest conformance --impl=NAME` is the main job."""


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
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--impl", required=True, metavar="NAME", help="the implementation")
@click.option("--device", default="cpu", show_default=True, help="a torch device")
@click.option("--check", "check_name", help="another check than the one that saved the case")
def replay(file: str, impl: str, device: str, check_name: str | None) -> None:
    """Run a saved case again; the exit status is 1 if it still fails."""
    try:
        case, notes = load_case(file)
        implementation = find_implementation(impl)
        place = find_device(device)
        check = _check(check_name or notes.get("check"))
    except (ValueError, Unavailable, pytest.UsageError) as error:
        raise click.UsageError(str(error)) from None
    prepare_device(place)
    driver = Driver(implementation, place)
    trial = Trial(driver, Oracle(case.dtype, place), case.config.family, case.dtype)
    click.echo(f"{check.name}: {check.sentence}")
    click.echo(f"  case      {case!r}")
    click.echo(f"  on        {implementation.name} {implementation.version}, {place}")
    try:
        verdict = confirmed(check, trial, case)
    except (LeftOut, NotOffered) as reason:
        click.echo(f"  says nothing here: {reason or 'the reference overflows'}")
        return
    for name in ("expected", "came", "where"):
        if getattr(verdict, name):
            click.echo(f"  {name:9} {getattr(verdict, name)}")
    click.echo("  passed" if verdict.passed else "  FAILED")
    sys.exit(0 if verdict.passed else 1)


def _check(name: str | None) -> Check:
    for check in all_checks():
        if check.name == name:
            return check
    raise ValueError(f"there is no check {name!r}; name one with --check")


if __name__ == "__main__":
    main(prog_name="python -m conformance")
