"""Witnesses: the saved cases that known failures are bound to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from conformance.check import Check, all_checks
from conformance.driver import Driver
from conformance.known import KNOWN_FOLDER, Known, match, read_known
from conformance.oracle import Oracle
from conformance.result_file import read_results
from conformance.results import Finding
from conformance.search import Effort, search
from conformance.trial import Trial
from conformance.witness import (
    Witness,
    find_witness,
    read_witness,
    replayed,
    witness_file,
    witnesses,
)
from strategies import Case, load_case
from tests import miniatures
from tests.conftest import Run

Runs = Callable[..., Run]

FAMILY = "step3-vl-10b"
SMOKE = ("--profile=smoke", f"--family={FAMILY}", "--clause=BA-02", "--known=known.toml")

KNOWN = """
[[known]]
releases = ">=1"
families = ["{family}"]
clauses = ["{clause}"]
what = "one item only"
link = "unreported"
"""


def write_known(folder: Path, clause: str = "BA-02", family: str = FAMILY, more: str = "") -> None:
    """A file with one entry."""
    text = KNOWN.format(clause=clause, family=family) + more
    (folder / "known.toml").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def case() -> Case:
    """The smallest case that an encoder for one item fails BA-02 on."""
    found = search(named("ba_02_permuted_items"), trial(miniatures.one_item), Effort(2))
    assert found.case is not None
    return found.case


def named(name: str) -> Check:
    """The check of a name."""
    return next(check for check in all_checks() if check.name == name)


def trial(implementation: miniatures.Miniature) -> Trial:
    """A trial in float32 on the CPU."""
    cpu, dtype = torch.device("cpu"), torch.float32
    return Trial(Driver(implementation, cpu), Oracle(dtype, cpu), FAMILY, dtype)


def witness(folder: Path, case: Case, **kinds: str) -> Witness:
    """A saved witness; releases are given as `v1="TypeError"`."""
    check = "ba_02_permuted_items"
    seen = {release.removeprefix("v"): kind for release, kind in kinds.items()}
    made = Witness(witness_file(folder, check, case), case, check, seen, "rows", "an error")
    made.save()
    return made


@pytest.fixture
def folder(tmp_path: Path, case: Case) -> Path:
    """A folder with a known failure of BA-02 and its witness."""
    write_known(tmp_path)
    witness(tmp_path / "known", case, **{"v1.0": "AssertionError"})
    return tmp_path


def failure(file: Path) -> Finding:
    """The only check that failed in a result file."""
    (found,) = [found for line in read_results(file).lines for found in line.failures]
    return found


def test_a_run_saves_witnesses_and_the_next_replays_them(check: Runs, tmp_path: Path) -> None:
    """The second run searches no more, and both say that the failure is known."""
    write_known(tmp_path)
    plain = check("one_item", *SMOKE)
    assert "without a witness" in plain.output
    assert check("one_item", *SMOKE, "--save-witnesses", "-n2").status == 0
    (saved,) = (tmp_path / "known").iterdir()
    content = saved.read_bytes()
    assert check("one_item", *SMOKE, "--save-witnesses").status == 0
    assert saved.read_bytes() == content
    run = check("one_item", *SMOKE, "--results=r.jsonl")
    assert run.status == 0, run.output
    assert run.marked("known") == {"BA-02"}
    assert "without a witness" not in run.output
    found = failure(tmp_path / "r.jsonl")
    assert (found.cases, found.kind, found.witness) == (
        1,
        "AssertionError",
        f"known/{saved.name}",
    )


def test_a_witness_is_replayed_by_its_file(folder: Path, command: Callable[..., Run]) -> None:
    """As any saved case, its weights beside it."""
    (saved,) = (folder / "known").iterdir()
    impl = f"--impl={miniatures.__file__}"
    assert command("replay", str(saved), f"{impl}:one_item").status == 1
    assert command("replay", str(saved), f"{impl}:right").status == 0


def test_a_fixed_failure_fails_the_run(check: Runs, folder: Path) -> None:  # noqa: ARG001
    """Its witness passes."""
    run = check("right", *SMOKE)
    assert run.status == 1
    assert f"BA-02 {FAMILY} float32 is a known failure (one item only), but it passed" in run.output


def test_a_check_that_only_other_releases_fail_is_not_fixed(
    check: Runs, tmp_path: Path, case: Case
) -> None:
    """A clause has several checks, and the releases of one entry need not fail the same ones."""
    write_known(tmp_path, clause="LA-03")
    passing = "la_03_images_of_an_item_in_order"
    one_item = case.replace(items=case.items[:1])
    file = witness_file(tmp_path / "known", passing, one_item)
    Witness(file, one_item, passing, {"1.9": "AssertionError"}, "rows", "an error").save()
    run = check("one_item", "--clause=LA-03", *SMOKE[:2], *SMOKE[3:])
    assert run.status == 0, run.output
    assert run.marked("known") == {"LA-03"}


def test_a_failure_of_another_kind_fails_the_run(check: Runs, folder: Path) -> None:  # noqa: ARG001
    """Another exception is another failure, which the entry does not excuse."""
    run = check("one_typed_item", *SMOKE)
    assert run.status == 1
    assert run.marked("failed") == {"BA-02"}
    assert "fails differently: TypeError: one item only" in run.output


def test_an_entry_that_is_never_met_fails_the_run(check: Runs, tmp_path: Path) -> None:
    """`step3` has no rotary that could fail."""
    write_known(tmp_path, clause="EN-07", family="step3")
    options = ("--profile=smoke", "--known=known.toml", "--clause=EN-07")
    run = check("right", *options, "--family=step3", "--clause=NP-01")
    assert run.status == 1
    assert "EN-07 step3 is a known failure (one item only), but is never met" in run.output
    assert check("right", *options, f"--family={FAMILY}").status == 0


def test_an_entry_for_families_that_are_not_there_fails_the_run(
    check: Runs, tmp_path: Path
) -> None:
    """Nothing of it can be met by this release."""
    write_known(tmp_path, family="step3")
    run = check("one_family", *SMOKE)
    assert run.status == 1
    assert "one-family 1.0 has no step3" in run.output


def test_what_fails_sometimes_may_pass(check: Runs, folder: Path) -> None:
    """Its witness passes on this machine; then the search decides."""
    write_known(folder, more="sometimes = true\n")
    run = check("right", *SMOKE)
    assert run.status == 0, run.output
    assert run.marked("passed") == {"BA-02"}


def test_another_release_is_noted_in_the_same_witness(
    check: Runs, folder: Path, case: Case
) -> None:
    """A case that fails there too needs no other; one that does not is forgotten."""
    (saved,) = (folder / "known").iterdir()
    witness(folder / "known", case, **{"v0.9": "AssertionError"})
    check("one_typed_item", *SMOKE, "--save-witnesses")
    assert load_case(saved)[1]["kinds"] == {"0.9": "AssertionError", "1.0": "TypeError"}
    check("right", *SMOKE, "--save-witnesses")
    assert load_case(saved)[1]["kinds"] == {"0.9": "AssertionError"}
    assert list((folder / "known").iterdir()) == [saved]


def test_a_witness_that_fails_nowhere_is_removed(check: Runs, folder: Path) -> None:
    """It was seen in this release alone, and passes now."""
    check("right", *SMOKE, "--save-witnesses")
    assert list((folder / "known").iterdir()) == []


def test_a_witness_of_the_release_comes_first(tmp_path: Path, case: Case) -> None:
    """Then one of another release of the same entry; never one of another entry."""
    entry = Known(">=1,<3", (FAMILY,), ("BA-02",), "one item only", "unreported")
    other = case.replace(items=case.items[:1])
    own = witness(tmp_path, case, **{"v1.0": "AssertionError"})
    newer = witness(tmp_path, other, **{"v2.0": "AssertionError"})

    def found(release: str, known: Known = entry) -> Path | None:
        one = find_witness(tmp_path, own.check, FAMILY, "float32", release, known)
        return one.file if one else None

    assert (found("1.0"), found("2.0")) == (own.file, newer.file)
    assert found("1.5") in (own.file, newer.file)
    assert found("4.0", Known(">=4", *[(FAMILY,), ("BA-02",), "", ""])) is None


def test_witnesses_share_their_weights(tmp_path: Path, case: Case) -> None:
    """One file of weights for all cases of an encoder, which come back as they were."""
    other = case.replace(items=case.items[:1])
    for one in (case, other):
        witness(tmp_path / "known", one, **{"v1.0": "values"})
    assert len(list((tmp_path / "weights").iterdir())) == 1
    saved = witnesses(tmp_path / "known", "ba_02_permuted_items", FAMILY, "float32")
    assert {one.case for one in saved} == {case, other}
    assert all(one.file.stat().st_size < 10_000 for one in saved)


def test_weights_that_are_gone_or_others_are_named(tmp_path: Path, case: Case) -> None:
    """The message names the file of the weights."""
    file = witness(tmp_path / "known", case, **{"v1.0": "values"}).file
    (weights,) = (tmp_path / "weights").iterdir()
    other = case.weights.replace({"vit_large_projector.weight": torch.zeros(1)}, "other")
    witness(tmp_path / "known", case.replace(weights=other), **{"v1.0": "values"})
    shutil.copy(tmp_path / "weights" / f"{other.digest}.safetensors", weights)
    with pytest.raises(ValueError, match=weights.stem):
        load_case(file)
    weights.unlink()
    with pytest.raises(ValueError, match=weights.stem):
        load_case(file)


def test_a_replay_judges_a_new_encoder(case: Case) -> None:
    """The verdict has the kind of the failure, or is a pass."""
    check = named("ba_02_permuted_items")
    wrong, right = (
        replayed(check, trial(m), case) for m in (miniatures.one_item, miniatures.right)
    )
    assert wrong is not None
    assert right is not None
    assert (wrong.kind, right.kind) == ("AssertionError", "")


def test_every_witness_of_the_suite_belongs_to_a_known_failure() -> None:
    """In each release that it was seen in, all clauses of its check are known to fail."""
    for file in sorted(KNOWN_FOLDER.glob("*/*-*.safetensors")):
        saved = read_witness(file)
        family, dtype = saved.case.config.family, str(saved.case.dtype).removeprefix("torch.")
        assert file == witness_file(file.parent, saved.check, saved.case)
        for release in saved.kinds:
            entries = [e for e in read_known(file.parent.name) if e.covers(release, "cpu")]
            for clause in named(saved.check).clauses:
                assert match(entries, clause, family, dtype), f"{file.name}, {release}: {clause}"


def test_every_file_of_weights_serves_a_witness() -> None:
    """None is left of witnesses that are gone."""
    used = {read_witness(f).case.weights.digest for f in KNOWN_FOLDER.glob("*/*-*.safetensors")}
    assert {file.stem for file in (KNOWN_FOLDER / "weights").glob("*")} == used
