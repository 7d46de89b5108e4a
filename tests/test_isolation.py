"""An implementation in another interpreter: every way to end is an outcome, and nothing leaks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
import torch

from conformance.driver import Driver
from conformance.isolation import wire
from conformance.isolation.gateway import Place
from conformance.isolation.remote import (
    RemoteDriver,
    RemoteImplementation,
    driver_of,
    find_anywhere,
)
from conformance.isolation.wire import FarConfig, config_text
from conformance.isolation.worker import Worker
from conformance.outcome import Crashed, Raised, Returned, TimedOut
from conformance.protocol import FAMILIES, Unavailable
from conformance.registry import BUILT_IN, find_implementation
from reference import FAMILIES as REFERENCE_FAMILIES
from reference import EncoderConfig, ImageItem, ReferenceEncoder
from strategies import Case, Image, Weights
from tests.far_side import SECONDS, answers, asks, said, start


@pytest.fixture(scope="module")
def unruly() -> Iterator[RemoteDriver]:
    """The unruly encoder."""
    driver = start()
    yield driver
    driver.close()


@pytest.mark.parametrize(
    ("do", "how"),
    [
        ("segfault", "SIGSEGV"),
        ("abort", "SIGABRT"),
        ("exit", "exit status 3"),
        ("interrupt", "SIGINT"),
        ("close everything", ""),
        ("leave a child", "exit status 5"),
        ("kill the keeper", "connection"),
    ],
)
def test_a_process_that_ends_is_a_crash(unruly: RemoteDriver, do: str, how: str) -> None:
    """The outcome says how it ended, and the next call is right."""
    outcome = unruly.run(asks(do))
    assert isinstance(outcome, Crashed), outcome
    assert how in outcome.signal
    assert outcome.stage == "call"
    assert answers(unruly)


@pytest.mark.parametrize("do", ["hang", "hang in c", "stop"])
def test_a_call_that_hangs_times_out(unruly: RemoteDriver, do: str) -> None:
    """Holding the interpreter's lock, or stopped, it ends all the same; the next call is right."""
    assert unruly.run(asks(do)) == TimedOut(SECONDS)
    assert answers(unruly)


@pytest.mark.parametrize("do", [None, "print", "close stdin", "start a child", "leave a thread"])
def test_what_harms_only_itself_changes_nothing(unruly: RemoteDriver, do: str | None) -> None:
    """Megabytes of output, closed streams, children and threads leave the same process at work."""
    before = unruly.restarts
    assert isinstance(unruly.run(asks(do)), Returned)
    assert answers(unruly)
    assert unruly.restarts == before


@pytest.mark.parametrize(
    ("do", "kind", "stage"),
    [
        ("raise", "KeyError", "call"),
        ("leave", "SystemExit", "call"),
        ("nothing", "TypeError", "call"),
        ("grow", "RuntimeError", "call"),
        ("huge", "MemoryError", "result"),
        ("huge view", "MemoryError", "result"),
        ("sparse", "TypeError", "result"),
        ("complex", "KeyError", "result"),
    ],
)
def test_what_is_raised_or_refused_crosses(
    unruly: RemoteDriver, do: str, kind: str, stage: str
) -> None:
    """Exceptions, memory without end and results that nobody can want leave the process at work."""
    before = unruly.restarts
    outcome = unruly.run(asks(do))
    assert isinstance(outcome, Raised), outcome
    assert (outcome.kind, outcome.stage) == (kind, stage)
    assert answers(unruly)
    assert unruly.restarts == before


def test_the_last_words_are_kept(unruly: RemoteDriver) -> None:
    """What it printed before it ended, and where a fatal signal struck."""
    unruly.run(asks("exit"))  # whose streams an earlier test may have closed
    unruly.run(asks("print and exit"))
    assert unruly.last_words == "out of luck"
    unruly.run(asks("segfault"))
    assert unruly.last_words.startswith("Fatal Python error: Segmentation fault")
    assert "unruly.py" in unruly.last_trace


def test_the_far_side_has_neither_the_reference_nor_the_suite(unruly: RemoteDriver) -> None:
    """Nothing that draws, judges or reports is imported there; it computes on one thread."""
    assert said(unruly.run(asks("modules"))) == ""
    assert said(unruly.run(asks("threads"))) == "1"


def test_weights_are_sent_when_they_are_new(
    unruly: RemoteDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for many calls; again when the far side has dropped them; again after a restart."""
    sent = []
    plain = wire.dumps

    def counting(value: dict) -> wire.Message:
        sent.append(len(value["weights"]))
        return plain(value)

    answers(unruly)
    monkeypatch.setattr(wire, "dumps", counting)
    unruly.run(asks())
    unruly.run(asks())
    assert sent == [0, 0]
    for seed in range(1, 13):
        unruly.run(asks(seed=seed))
    sent.clear()
    unruly.run(asks(seed=0))
    assert sent == [0, 1]
    unruly.run(asks("exit"))
    sent.clear()
    unruly.run(asks())
    assert sent == [1]


def test_side_effects_are_seen_from_here(unruly: RemoteDriver) -> None:
    """An observation crosses; that of a process that ended has the end as its outcome."""
    assert unruly.observe(asks()).mutated == ()
    assert unruly.observe(asks("mutate")).mutated == ("item 0 feature",)
    disturbance = unruly.observe(asks("disturb"))
    assert isinstance(disturbance.outcome, Returned), disturbance
    assert disturbance.disturbed == ("default dtype",)
    assert isinstance(unruly.observe(asks("exit")).outcome, Crashed)
    both = unruly.sequence([asks(), asks("exit")])
    assert both == [Crashed("exit status 3")] * 2


class PoisonedGateway:
    """A far side whose device answers no more after a call."""

    def __init__(self) -> None:
        self.ended = 0

    def ask(self, *_: object, calls: int) -> tuple[str, str, bytes]:
        """An exception, as after a failed kernel."""
        failed = wire.outcome_value(Raised("call", "RuntimeError", "AcceleratorError", "assert"))
        found = {"found": [failed] * calls, "seconds": 0.0, "trace": "", "poisoned": True}
        return ("answer", *wire.dumps(found))

    def end_worker(self) -> None:
        """Count."""
        self.ended += 1


def test_a_poisoned_process_is_started_again() -> None:
    """Once for each call that failed so, and the failure is that call's outcome."""
    gateway = PoisonedGateway()
    place = Place("popen")
    device = torch.device("cuda")
    driver = RemoteDriver(
        RemoteImplementation("x", "1", FAMILIES, "items", (), "x", place, device, {}, gateway)
    )
    assert said(driver.run(asks())) == "assert"
    assert (gateway.ended, driver.restarts, driver.given_up) == (1, 1, "")


@pytest.mark.skipif(torch.cuda.is_available(), reason="plays a CUDA device that fails")
def test_a_device_that_answers_no_more_is_noticed() -> None:
    """The worker tries it after every exception."""
    worker = Worker(Mock(), find_implementation("reference"), torch.device("cuda"))
    case = asks()
    request = {
        "weights": {case.weights.digest: dict(case.weights)},
        "cases": [wire.request_value(case)],
        **dict.fromkeys(("fresh", "observe", "forget"), False),
    }
    answer = wire.loads(worker.answer(wire.dumps(request)))
    assert answer["poisoned"]
    assert isinstance(wire.read_outcome(answer["found"][0]), Raised)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_built_in_adapter_can_be_sent(name: str) -> None:
    """It is complete there: the engine may be missing, but no module of the suite."""
    try:
        start(name).close()
    except Unavailable as reason:
        assert "conformance" not in str(reason).partition("cannot run")[2]  # noqa: PT017


def gone(process: int) -> bool:
    """Whether a process ends within half a minute."""
    for _ in range(300):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_nothing_is_left_running() -> None:
    """A process ends with its driver, and another with the keeper that watched it."""
    driver = start()
    first = int(said(driver.run(asks("pid"))))
    driver.run(asks("kill the keeper"))
    second = int(said(driver.run(asks("pid"))))
    assert gone(first)
    os.kill(second, signal.SIGSTOP)
    driver.close()
    assert gone(second)


def test_a_hopeless_implementation_is_given_up() -> None:
    """After some ends in a row the process is not started again."""
    driver = start(restarts=2)
    ends = [driver.run(asks("exit")) for _ in range(4)]
    driver.close()
    assert ends == [Crashed("exit status 3")] * 4
    assert driver.restarts == 2
    assert "2 times in a row" in driver.given_up


def test_results_are_the_same_on_both_sides() -> None:
    """The reference gives the same bits in process and isolated, strides and errors included."""
    cases = []
    for family in FAMILIES:
        config = EncoderConfig.tiny(family)
        pixels = torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
        whole = Case(config, Weights.drawn(config, 0), ()).regrouped(
            [[Image(pixels[0], pixels[1:]), Image(pixels[2])]]
        )
        (item,) = whole.items
        cases += [whole, whole.replace(items=(ImageItem(item.feature.mT, {}),))]
        cases.append(whole.replace(items=(ImageItem(pixels.mT, {"num_patches": [0, 0, 0]}),)))
    far = start("reference")
    implementation, cpu = find_anywhere("reference", None, "cpu")
    near = driver_of(implementation, cpu)
    assert isinstance(near, Driver)
    for case in cases:
        one, other = near.run(case), far.run(case)
        if isinstance(one, Returned):
            assert isinstance(other, Returned)
            assert torch.equal(one.tensor, other.tensor)
            assert one.tensor.stride() == other.tensor.stride()
        else:
            assert one == other
    far.close()


def test_a_configuration_crosses_with_its_attributes() -> None:
    """`family`, `to_hf()` and the plain fields are as in process: the reference can be built."""
    config = EncoderConfig.tiny("step3", hidden_act="gelu")
    far = FarConfig(config_text(config))
    assert far.to_hf() == config.to_hf()
    assert (far.family, far.head_dim, far.grid) == (config.family, config.head_dim, config.grid)
    assert EncoderConfig(**far.fields) == config
    assert ReferenceEncoder(far, Weights.drawn(config, 0))


def test_both_sides_know_the_same_families() -> None:
    """The far side's list is the reference's."""
    assert FAMILIES == REFERENCE_FAMILIES
