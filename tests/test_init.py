"""`python -m conformance init NAME` writes an adapter that runs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run, in_a_process

Command = Callable[..., Run]


def checked(folder: Path, *options: str) -> Run:
    """The main job on the adapter `first.py` of a folder."""
    base = ("pytest", str(ROOT / "conformance"), "-q", "-p", "no:cacheprovider")
    return in_a_process(folder, *base, "--impl=first.py:first", "--profile=smoke", *options)


@pytest.mark.parametrize("interface", ["items", "batch"])
def test_the_adapter_runs_at_once(command: Command, tmp_path: Path, interface: str) -> None:
    """It passes, and every run says that it is not the vendor's encoder which answers."""
    written = command("init", "first", f"--interface={interface}")
    assert written.status == 0, written.output
    run = checked(tmp_path, "--clause=LA-02", "--clause=LA-03", "--clause=EN-01", "-v")
    assert run.status == 0, run.output
    assert run.marked("passed") == {"LA-02", "LA-03", "EN-01"}
    assert f"first 0.1 ({interface} interface), step3-vl-10b" in run.output
    assert "the suite's reference answers" in run.output


def test_the_line_it_prints_is_the_one_to_run(command: Command) -> None:
    """The command names the file and the attribute that were written."""
    assert "--impl=first.py:first" in command("init", "first").output


def test_an_encoder_in_the_marked_place_is_judged(command: Command, tmp_path: Path) -> None:
    """The result of what is put there decides the verdict."""
    command("init", "first")
    file = tmp_path / "first.py"
    call = "self.model.get_image_feature(items)"
    text = file.read_text()
    assert text.count("REPLACE:") == 2
    file.write_text(text.replace(call, f"0 * {call}"))
    run = checked(tmp_path, "--clause=EN-00")
    assert run.status == 1
    assert run.marked("failed") == {"EN-00"}, run.output


def test_families_are_declared(command: Command, tmp_path: Path) -> None:
    """All that were asked for, each once, in the order of the options."""
    command("init", "first", "--family=step3p7", "--family=step3", "--family=step3p7")
    run = checked(tmp_path, "--clause=LA-05", "-v")
    assert run.status == 0, run.output
    assert "step3p7, step3," in run.output


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("not-a-name", "use letters"), ("class", "use letters"), ("torch", "torch_adapter")],
)
def test_names_that_cannot_be_used_are_refused(
    command: Command, tmp_path: Path, name: str, remedy: str
) -> None:
    """The message says what to do, and nothing is written."""
    run = command("init", name)
    assert run.status == 2
    assert remedy in run.output
    assert not list(tmp_path.iterdir())


def test_a_file_is_never_overwritten(command: Command, tmp_path: Path) -> None:
    """What is there stays as it is."""
    (tmp_path / "first.py").write_text("mine = 1\n")
    run = command("init", "first")
    assert run.status == 2
    assert "is there already" in run.output
    assert (tmp_path / "first.py").read_text() == "mine = 1\n"
