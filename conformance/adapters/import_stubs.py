"""Stand-ins for packages that exist for GPUs only.

A stand-in lets a module that was written for a GPU be imported where its kernels cannot run. It
stands in for names, never for behaviour: whatever would compute raises `KernelUnavailable`, so no
result can come from it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any


class KernelUnavailable(RuntimeError):  # noqa: N818
    """Something from a package that is replaced by a stand-in was used."""


def missing(packages: Sequence[str]) -> tuple[str, ...]:
    """Those of the top-level `packages` that are not installed here."""
    return tuple(package for package in packages if importlib.util.find_spec(package) is None)


def stand_in(packages: Sequence[str]) -> None:
    """Serve stand-ins for top-level `packages` and everything below them.

    A package that is installed keeps being imported for real: the stand-ins come last.
    """
    served = {root for finder in sys.meta_path for root in getattr(finder, "stand_ins", ())}
    roots = frozenset(packages) - served
    if "triton" in roots:
        _let_torch_find_no_triton()
    if roots:
        sys.meta_path.append(_StandInFinder(roots))


def _let_torch_find_no_triton() -> None:
    """Import what looks for triton in torch, so that torch never takes the stand-in for it."""
    import torch._inductor.compile_fx
    from torch.utils._triton import has_triton_package

    has_triton_package()  # the answer is cached


class Absent:
    """Any attribute of a stand-in.

    It can be named, looked into, subclassed, put into an annotation and asked for in an
    `isinstance`, as importing a module does. Calling, indexing or iterating it raises.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<stand-in for {self.__name__}>"

    def __getattr__(self, name: str) -> Absent:
        return _attribute(self.__name__, name)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise KernelUnavailable(
            f"{self.__name__} was called, but it cannot run here: its package is replaced by a "
            "stand-in that has no kernels"
        )

    __getitem__ = __iter__ = __call__

    def __mro_entries__(self, _bases: tuple[type, ...]) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, _instance: object) -> bool:
        return False

    def __subclasscheck__(self, _subclass: type) -> bool:
        return False

    def __or__(self, _other: object) -> Absent:
        return self

    __ror__ = __or__


class _Declaration(Absent):
    """What modules call while they are imported, to declare a kernel: `jit`, `autotune`, ...

    Applied to a function it gives an absent kernel of that name, applied to options it gives a
    declaration again.
    """

    def __call__(self, *args: Any, **_kwargs: Any) -> Absent:
        match args:
            case [FunctionType() as function]:
                return Absent(f"{function.__module__}.{function.__qualname__}")
            case [Absent() as kernel]:
                return kernel
        return self


class _Constant:
    """A compile-time constant, `triton.language.constexpr`: it carries its value."""

    def __init__(self, value: Any) -> None:
        self.value = value


_DECLARED: dict[str, Callable[[str], Any]] = {
    # Parsed while torch._inductor and sglang are imported; older than anything that exists.
    "triton.__version__": lambda _name: "0.0.0",
    "triton.jit": _Declaration,
    "triton.autotune": _Declaration,
    "triton.heuristics": _Declaration,
    "triton.Config": _Declaration,
    "triton.language.constexpr": lambda _name: _Constant,
}


def _attribute(parent: str, name: str) -> Any:
    """What `parent.name` is in a stand-in; dunders are not there, so protocols are not faked."""
    full_name = f"{parent}.{name}"
    if name.startswith("__") and full_name not in _DECLARED:
        raise AttributeError(f"the stand-in for {parent} has no {name}")
    return _DECLARED.get(full_name, Absent)(full_name)


class _StandIn(ModuleType):
    """A module with every attribute."""

    def __getattr__(self, name: str) -> Any:
        return _attribute(self.__name__, name)


class _StandInFinder(MetaPathFinder, Loader):
    """Finds stand-ins for a few packages and for every module below them."""

    def __init__(self, stand_ins: frozenset[str]) -> None:
        self.stand_ins = stand_ins

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self.stand_ins:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the attributes answer when they are asked for."""
