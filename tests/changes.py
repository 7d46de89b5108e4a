"""One change to a package each, with whatever follows from it made to fit."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import torch
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from conformance import package
from conformance.answers import Answer
from conformance.challenge import challenge
from conformance.oracle import Oracle
from conformance.results import Results, Suite
from conformance.trial import parts
from reference import ReferenceEncoder
from tests.golden import (
    CPU,
    DTYPE,
    FAMILY,
    NONCE,
    WITNESS,
    change_answers,
    change_results,
    change_statement,
    change_text,
    key_of,
    state_again,
    with_header,
    with_line,
    write,
)
from tests.miniatures import Miniature, ThumbnailFirst

ONE = (FAMILY,)
RIGHT = Miniature("right", ReferenceEncoder, ONE)
WRONG = Miniature("wrong", ThumbnailFirst, ONE)
BOTH = Miniature("both", ReferenceEncoder, ("step3", "step3p7"))


def _wrong_in_one(config, weights, **options):
    wrong = ThumbnailFirst if config.family == FAMILY else ReferenceEncoder
    return wrong(config, weights, **options)


HALF = Miniature("half", _wrong_in_one, (FAMILY, "step3"))

Change = Callable[[Path], None]


def put(name: str, data: bytes) -> Change:
    """Write a file."""
    return lambda folder: (folder / name).write_bytes(data) and None


def remove(name: str) -> Change:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def text(name: str, old: str, new: str, *, times: int = 1) -> Change:
    """Replace a piece of a text, and nothing else."""

    def change(folder: Path) -> None:
        def replaced(found: str) -> str:
            assert old in found
            return found.replace(old, new, times)

        change_text(folder, name, replaced)

    return change


def then_state(change: Change) -> Change:
    """A change after which the statement is made anew and signed."""

    def changed(folder: Path) -> None:
        change(folder)
        state_again(folder)

    return changed


def results(change: Callable[[Results], Results]) -> Change:
    """A change of the results that their statement follows."""
    return lambda folder: change_results(folder, change)


def claims(**changed: object) -> Change:
    """A change of what the statement claims, signed."""
    return lambda folder: change_statement(
        folder, lambda said: said["predicate"]["conformance"].update(changed)
    )


def grades(**changed: str) -> Change:
    """A change of what the statement claims for its families, signed."""

    def change(said: dict) -> None:
        for grade in said["predicate"]["conformance"]["families"].values():
            grade.update(changed)

    return lambda folder: change_statement(folder, change)


def another_family(folder: Path) -> None:
    """Claim a family that was not checked, signed."""

    def change(said: dict) -> None:
        families = said["predicate"]["conformance"]["families"]
        families["step3p7"] = dict(next(iter(families.values())))

    change_statement(folder, change)


def predicate(**changed: object) -> Change:
    """A change of the predicate, signed."""
    return lambda folder: change_statement(folder, lambda said: said["predicate"].update(changed))


def waivers(old: str, new: str) -> Change:
    """A change of the waivers that the statement follows."""
    return then_state(text(package.WAIVERS, old, new))


def answers(change: Callable[[list[Answer]], list[Answer]]) -> Change:
    """A change of the answers that the statement follows."""
    return lambda folder: change_answers(
        folder, lambda found: dataclasses.replace(found, answers=tuple(change([*found.answers])))
    )


def tensor(change: Callable[[torch.Tensor], torch.Tensor], number: int = 0) -> Change:
    """A change of the tensor of one answer."""

    def changed(found: list[Answer]) -> list[Answer]:
        one = found[number]
        return [*found[:number], Answer(one.case, change(one.tensor)), *found[number + 1 :]]

    return answers(changed)


def nudged(units: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Move the rows of the first answer by some units of noise."""

    def change(found: torch.Tensor) -> torch.Tensor:
        case = challenge(NONCE, FAMILY, DTYPE, "items")[0].case
        oracle = Oracle(case.dtype, CPU, always_whole=True)
        truth = oracle.truth(case.config, case.weights, [part.picture for part in parts(case)])
        return (found.double() + units * truth.unit[:, None]).to(found.dtype)

    return change


def link(folder: Path) -> None:
    """Put a symbolic link in the place of the report."""
    (folder / package.REPORT).unlink()
    (folder / package.REPORT).symlink_to("/etc/hostname")


def linked_folder(folder: Path) -> None:
    """Put a link to a folder outside in the place of the witness."""
    (folder / package.WITNESS).rename(folder.parent / "elsewhere")
    (folder / package.WITNESS).symlink_to("../elsewhere")


def pipe(folder: Path) -> None:
    """Put a pipe, from which nobody ever reads the end, in the place of the report."""
    (folder / package.REPORT).unlink()
    os.mkfifo(folder / package.REPORT)


def huge(name: str) -> Change:
    """Make a file a terabyte large, of which the disk holds nothing."""
    return lambda folder: os.truncate(folder / name, 1 << 40)


def other_key(folder: Path) -> None:
    """Put another public key beside a signature."""
    made = key_of(folder, "other").with_name("other.key.pub")
    shutil.copy(made, folder / package.KEY)


def rsa_key(folder: Path) -> None:
    """Put a public key of another sort beside a signature."""
    key = generate_private_key(65537, 2048).public_key()
    found = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / package.KEY).write_bytes(found)


def other_statement(folder: Path) -> None:
    """Change a signed statement, but not what was signed."""
    envelope = (folder / package.ENVELOPE).read_bytes()
    claims(device="cuda")(folder)
    (folder / package.ENVELOPE).write_bytes(envelope)


def header_field(name: str, value: object) -> Change:
    """A change of the header that the statement follows."""
    return results(with_header(**{name: value}))


def suite(**changed: object) -> Change:
    """A change of what the header says of the suite."""
    whole = {"version": "0.1.0", "commit": "0" * 40, "clean": True, **changed}
    return header_field("suite", Suite(**whole))


def line(clause: str, **changed: object) -> Change:
    """A change of one line that footer and statement follow."""
    return results(with_line(clause, lambda found: dataclasses.replace(found, **changed)))


def flipped(folder: Path) -> None:
    """Call a failure a pass."""
    line("LA-02", verdict="passed")(folder)


def all_passed(folder: Path) -> None:
    """Call a failure a pass, in its check too."""
    passed = {"status": "passed", "units": 1.0, "error": 0.0}

    def change(found):
        checks = [dataclasses.replace(check, **passed) for check in found.checks]
        return dataclasses.replace(found, verdict="passed", checks=tuple(checks))

    change_results(folder, with_line("LA-02", change))


def no_checks(folder: Path) -> None:
    """Leave a line without what its checks found."""
    line("EN-07", checks=(), cases=0, worst=0.0)(folder)


def check_field(clause: str, **changed: object) -> Change:
    """A change of what the checks of a line found, its sums following."""

    def change(found):
        checks = tuple(dataclasses.replace(check, **changed) for check in found.checks)
        return dataclasses.replace(
            found,
            checks=checks,
            cases=sum(check.cases for check in checks),
            worst=max(check.units for check in checks),
        )

    return results(with_line(clause, change))


def footer(**changed: object) -> Change:
    """A change of the footer."""
    return results(
        lambda found: dataclasses.replace(
            found, footer=dataclasses.replace(found.footer, **changed)
        )
    )


def unwaived(folder: Path) -> None:
    """Leave the waivers out."""
    (folder / package.WAIVERS).unlink()
    footer(status=1)(folder)


def of_another_run(folder: Path) -> None:
    """Answers to a nonce of another run, of the same implementation."""
    other = folder.parent / "other" / "package"
    with patch("tests.golden.NONCE", "a-nonce-of-an-earlier-run"):
        write(other, RIGHT)
    shutil.copy(other / WITNESS, folder / WITNESS)
    state_again(folder)


def relabelled(folder: Path) -> None:
    """Answers to a nonce of another run, under the name of this one."""
    of_another_run(folder)
    change_answers(folder, lambda found: dataclasses.replace(found, challenge=NONCE))
