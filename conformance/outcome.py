"""What came of running an encoder on a case."""

from __future__ import annotations

import builtins
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

Stage = Literal["build", "load", "call", "result"]


@dataclass(frozen=True, eq=False)
class Returned:
    """A result.

    Attributes:
        tensor: on the CPU, as the encoder left it.
        device: where it was.
    """

    tensor: Tensor
    device: str = "cpu"

    def __str__(self) -> str:
        shape = tuple(self.tensor.shape)
        return f"a {str(self.tensor.dtype).removeprefix('torch.')} result of shape {shape}"


@dataclass(frozen=True)
class Raised:
    """An exception.

    Attributes:
        stage: whether building, loading weights, calling or reading the result raised it.
        kind: the nearest built-in class, such as `ValueError`.
        type: its own class, such as `reference.errors.MissingCountsError`.
        message: as text.
        at: the file and line that raised it, such as `model.py:57`.
    """

    stage: Stage
    kind: str
    type: str
    message: str
    at: str = ""

    @classmethod
    def of(cls, error: BaseException, stage: Stage = "call") -> Raised:
        """The outcome that an exception is."""
        own = type(error)
        nearest = next(
            base for base in own.__mro__ if getattr(builtins, base.__name__, None) is base
        )
        module = "" if own.__module__ == "builtins" else f"{own.__module__}."
        frames = traceback.extract_tb(error.__traceback__)
        at = _place(frames[-1]) if frames else ""
        return cls(stage, nearest.__name__, f"{module}{own.__qualname__}", str(error), at)

    def is_a(self, kind: builtins.type[BaseException]) -> bool:
        """Whether the exception is of a built-in class or one derived from it."""
        found = getattr(builtins, self.kind)
        return isinstance(found, builtins.type) and issubclass(found, kind)

    def __str__(self) -> str:
        first, *_ = self.message.strip().splitlines() or ["(no message)"]
        where = _while(self.stage)
        at = f" [{self.at}]" if self.at else ""
        return f"{self.type}: {first[:200]}{where}{at}"


@dataclass(frozen=True)
class Crashed:
    """The process ended.

    Attributes:
        signal: that ended it, such as `SIGSEGV`, or the exit status, or what else became of it.
        stage: what it was doing.
    """

    signal: str
    stage: Stage = "call"

    def __str__(self) -> str:
        return f"a crash ({self.signal}){_while(self.stage)}"


@dataclass(frozen=True)
class TimedOut:
    """No answer within the time allowed.

    Attributes:
        seconds: that were allowed.
        stage: what it was doing.
    """

    seconds: float
    stage: Stage = "call"

    def __str__(self) -> str:
        return f"no answer within {self.seconds:g} s{_while(self.stage)}"


Outcome = Returned | Raised | Crashed | TimedOut

_DOING = {"build": "being built", "load": "loading weights"}


def unbuilt(outcome: Outcome) -> bool:
    """Whether there was no encoder to call."""
    return not isinstance(outcome, Returned) and outcome.stage in _DOING


def _while(stage: Stage) -> str:
    return f" while it was {_DOING[stage]}" if stage in _DOING else ""


def joined(outcomes: list[Outcome]) -> Outcome:
    """The rows of several results below each other, or the first outcome that is no result."""
    tensors = []
    for outcome in outcomes:
        if not isinstance(outcome, Returned):
            return outcome
        tensors.append(as_rows(outcome.tensor))
    try:
        return Returned(torch.cat(tensors))
    except RuntimeError as error:
        return Raised.of(error)


def as_rows(tensor: Tensor) -> Tensor:
    """A result as `(rows, D)`, whatever its rank; LA-01 alone is about rank and dtype."""
    return tensor.reshape(-1, tensor.shape[-1]) if tensor.dim() else tensor.reshape(1, 1)


def _place(frame: traceback.FrameSummary) -> str:
    """The file and line, with the folder of a file whose name says nothing by itself."""
    file = Path(frame.filename)
    named = file.name if file.name != "__init__.py" else f"{file.parent.name}/{file.name}"
    return f"{named}:{frame.lineno}"
