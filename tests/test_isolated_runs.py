"""Runs of an implementation in another interpreter or on another machine, as a user starts them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.driver import Driver
from conformance.isolation.gateway import find_place
from conformance.isolation.remote import (
    driver_of,
    find_anywhere,
)
from conformance.outcome import Crashed
from conformance.protocol import Unavailable
from tests.conftest import MINIATURES, Run
from tests.far_side import UNRULY, answers, asks, start

Check = Callable[..., Run]

ISOLATED = f"--python={sys.executable}"
SMOKE = ("--profile=smoke", "--family=step3-vl-10b")


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a script in the place of `ssh`."""

    def replace(script: str) -> None:
        file = tmp_path / "bin" / "ssh"
        file.parent.mkdir()
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")

    return replace


def test_a_file_is_sent_to_another_machine(ssh: Callable[[str], None], tmp_path: Path) -> None:
    """There the implementation's own file need not exist."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    ssh(f'for last; do :; done; cd {elsewhere} && exec sh -c "$last"')
    driver = start(os.path.relpath(UNRULY), gateway=f"ssh=somewhere//python={sys.executable}")
    assert answers(driver)
    assert isinstance(driver.run(asks("segfault")), Crashed)
    assert answers(driver)
    assert "sent/unruly.py" in driver.last_trace
    driver.close()


def test_a_machine_that_cannot_be_reached_is_one_line(
    ssh: Callable[[str], None], check: Check
) -> None:
    """The line is what ssh says."""
    ssh("echo 'ssh: no such host somewhere' >&2; exit 255")
    run = check("right", "--gateway=ssh=somewhere")
    assert run.status == 4
    assert "Traceback" not in run.output
    assert run.output.count("ssh: no such host somewhere") == 1, run.output


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--python=/no/such/python",), "/no/such/python"),
        (("--python=/bin/false",), "/bin/false"),
        (("--python=/bin/echo",), "/bin/echo"),
        (("--gateway=nonsense",), "--gateway=nonsense"),
        (("--gateway=popen//python=python3", "--python=python3"), "leave out --python"),
        ((ISOLATED, "--timeout=0"), "--timeout"),
        ((ISOLATED, "--restarts=0"), "--restarts"),
        ((ISOLATED, "--device=cuda:99"), "cuda:99"),
        ((ISOLATED, "--impl=no_such_module:x"), "no_such_module"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_status_4(
    check: Check, options: tuple[str, ...], word: str
) -> None:
    """The line names the value; there is no traceback."""
    run = check("right", *options)
    assert run.status == 4, run.output
    assert "Traceback" not in run.output
    assert len([line for line in run.output.splitlines() if word in line]) == 1, run.output


def test_a_missing_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the interpreter, the package and the remedy."""
    (tmp_path / "safetensors.py").write_text("raise ModuleNotFoundError('No safetensors here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(Unavailable) as refused:
        start()
    (line,) = str(refused.value).splitlines()
    assert f"{sys.executable} -m pip install safetensors" in line


def test_an_import_that_ends_the_process_is_one_line(tmp_path: Path) -> None:
    """An implementation that cannot even be imported is unavailable, and says its last words."""
    file = tmp_path / "fatal.py"
    file.write_text("import os\nprint('no licence', flush=True)\nos._exit(7)\n")
    with pytest.raises(Unavailable, match=r"exit status 7.*no licence"):
        start(f"{file}:x")


def test_isolated_runs_give_the_same_table(check: Check) -> None:
    """Verdicts and numbers of every clause of a level, with a wrong encoder, and on two workers."""
    options = (*SMOKE, "-k", "NP or LA or SE-0 or EN-01")
    alone = check("thumbnail_first", *options)
    isolated = check("thumbnail_first", *options, ISOLATED, "-n2")
    assert alone.table == isolated.table
    assert len(alone.table) > 20
    assert alone.status == isolated.status == 1


def test_a_crash_is_reported_with_its_clause(check: Check, command: Callable[..., Run]) -> None:
    """Other clauses keep their verdicts, and the printed line crashes again."""
    options = (*SMOKE, ISOLATED, "--clause=NP-03", "--clause=LA-02", "--clause=SE-02")
    run = check("crashes_on_an_int", *options)
    assert run.status == 1
    assert run.marked("failed") == {"NP-03"}
    assert run.marked("passed") == {"LA-02", "SE-02"}
    assert "came     a crash (SIGSEGV)" in run.output
    assert "printed  Fatal Python error" in run.output
    line = next(line for line in run.output.splitlines() if line.startswith("  replay"))
    again = command(*line.split()[4:])
    assert again.status == 1
    assert "a crash (SIGSEGV)" in again.output


def test_a_hopeless_run_ends(check: Check) -> None:
    """It says so, fails, and keeps the verdicts made until then."""
    options = (*SMOKE, ISOLATED, "--restarts=2", "--clause=LA-02", "--clause=SE-02")
    run = check("crashes", *options)
    assert run.status == 1
    assert "gave crashes up" in run.output
    assert len(run.marked("failed")) == 1
    assert len(run.marked("-")) == 1


def test_a_run_without_these_options_has_no_other_process() -> None:
    """The default is the suite's own process."""
    assert find_place(None, None, timeout=60, restarts=20) is None
    implementation, cpu = find_anywhere(f"{MINIATURES}:right", None, "cpu")
    assert isinstance(driver_of(implementation, cpu), Driver)
