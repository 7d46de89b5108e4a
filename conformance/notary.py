"""`python -m conformance keygen`, `sign` and `verify`: packages of certificates."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.certification import missing_extra
from conformance.challenge import NONCE_FORM, is_nonce
from conformance.document import printable
from conformance.dtypes import DTYPES
from conformance.package import ENVELOPE, KEY, STATEMENT, altered
from reference import FAMILIES

if TYPE_CHECKING:
    from conformance.verification import Verification

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

_MOST_BREACHES = 50


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def keygen(file: Path) -> None:
    """Write a new Ed25519 key: the private one to FILE, the public one to FILE.pub."""
    _require_extra()
    from conformance.signature import generate

    try:
        public = generate(file)
    except OSError as error:
        raise click.UsageError(f"cannot write {error.filename}: {error.strerror}") from None
    click.echo(f"{file} is private: keep it; {public} is for those who verify")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--key", required=True, type=_FILE, help="the private key that keygen wrote")
def sign(folder: Path, key: Path) -> None:
    """Sign the package in FOLDER."""
    _require_extra()
    from conformance.signature import KeyFileError
    from conformance.signature import sign as signed

    try:
        payload = (folder / STATEMENT).read_bytes()
        if changed := altered(folder, payload):
            raise click.UsageError(f"not what the run wrote: {', '.join(changed)}; certify again")
        envelope, public = signed(payload, key.read_bytes())
        (folder / ENVELOPE).write_bytes(envelope)
        (folder / KEY).write_bytes(public)
    except OSError as error:
        raise click.UsageError(f"{error.filename}: {error.strerror}") from None
    except KeyFileError as error:
        raise click.UsageError(f"{key}: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise click.UsageError(f"{folder / STATEMENT} is not what the run wrote") from None
    click.echo(f"signed {folder / STATEMENT} in {folder / ENVELOPE}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--key", type=_FILE, help="the public key that must have signed it")
@click.option("--challenge", metavar="NONCE", help="the nonce that must have been answered")
@click.option(
    "--family",
    "families",
    multiple=True,
    type=click.Choice(FAMILIES),
    help="that must be certified, repeatable; default: all that the implementation declares",
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    type=click.Choice(list(DTYPES)),
    help="that must have been checked, repeatable",
)
def verify(
    folder: Path,
    key: Path | None,
    challenge: str | None,
    families: tuple[str, ...],
    dtypes: tuple[str, ...],
) -> None:
    """Verify the package in FOLDER, without its implementation or its device.

    The exit status is 0 if it is accepted, 1 if it breaks a rule, and 2 if it is no package.
    """
    _require_extra()
    if challenge is not None and not is_nonce(challenge):
        raise click.UsageError(f"--challenge={challenge} is no nonce: {NONCE_FORM}")
    import torch

    from conformance.device import prepare_device
    from conformance.verification import NotAPackage
    from conformance.verification import verify as verified

    prepare_device(torch.device("cpu"))
    trusted = key.read_bytes() if key else None
    try:
        found = verified(folder, key=trusted, challenge=challenge, families=families, dtypes=dtypes)
    except NotAPackage as reason:
        click.echo(f"not a package: {printable(reason)}", err=True)
        sys.exit(2)
    click.echo("\n".join(_lines(found, families)))
    sys.exit(0 if found.accepted else 1)


def _require_extra() -> None:
    if missing := missing_extra():
        raise click.UsageError(missing)


def _lines(found: Verification, families: Collection[str]) -> Iterator[str]:
    for breach in found.breaches[:_MOST_BREACHES]:
        yield str(breach)
    if len(found.breaches) > _MOST_BREACHES:
        yield f"and {len(found.breaches) - _MOST_BREACHES} more"
    if not found.accepted:
        if certified := _certified_apart(found):
            yield f"reaches core: {', '.join(certified)}; ask for that alone with --family"
        yield "REFUSED: the rules stand in conformance/rules.toml"
        return
    assert found.results is not None
    assert found.certificate is not None
    assert found.recomputed is not None
    header, settings = found.results.header, found.results.header.settings
    who = f"{header.implementation.name} {header.implementation.version}"
    where = f"{', '.join(settings.families)} in {', '.join(settings.dtypes)} on {settings.device}"
    yield printable(f"{who}: {where}")
    yield printable(f"the files that were checked: {found.subject}")
    yield (
        f"{found.recomputed.right} answers to the challenge recomputed here, at most "
        f"{found.recomputed.worst:.2g} noise units off"
    )
    for note in found.notes:
        yield printable(f"note: {note}")
    asked = families or settings.families
    if others := found.certificate.summary(set(settings.families) - set(asked)):
        yield f"not asked for: {others}"
    yield f"ACCEPTED: {found.certificate.summary(asked)}"


def _certified_apart(found: Verification) -> list[str]:
    """The families that reach core, if nothing is wrong but that others do not."""
    only_core = {breach.rule for breach in found.breaches} == {"LV-02"}
    return found.certificate.certified if found.certificate and only_core else []
