"""Stand-ins for packages that exist for GPUs only.

A stand-in lets a module that was written for a GPU be imported where its kernels cannot run. It
stands in for names, never for behaviour: whatever would compute raises `KernelUnavailable`, so no
result can come from it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any


class KernelUnavailable(RuntimeError):  # noqa: N818
    """Something was used that only a package replaced by a stand-in could do."""


def missing(modules: Iterable[str]) -> tuple[str, ...]:
    """Those of some modules whose package is not installed, be there a stand-in or not."""
    specs = ((module, importlib.util.find_spec(module.partition(".")[0])) for module in modules)
    return tuple(
        module for module, spec in specs if spec is None or isinstance(spec.loader, StandInFinder)
    )


def stand_in(modules: Iterable[str]) -> None:
    """Serve stand-ins for some modules and every module below them.

    An installed package is still imported for real: stand-ins are looked for last. What is above
    a stand-in is an empty package, in which nothing else is found.
    """
    served = {finder.roots for finder in sys.meta_path if isinstance(finder, StandInFinder)}
    roots = frozenset(modules).difference(*served)
    if "triton" in roots:
        _let_torch_find_no_triton()
    if roots:
        sys.meta_path.append(StandInFinder(roots))


def _let_torch_find_no_triton() -> None:
    """Let torch look for triton first, so that it never takes the stand-in for a compiler."""
    importlib.import_module("torch._inductor.compile_fx")
    importlib.import_module("torch.utils._triton").has_triton_package()  # the answer is cached


class Absent:
    """Any attribute of a stand-in.

    It can be named, looked into, subclassed, put into an annotation and asked for in an
    `isinstance`: modules do that while they are imported. Calling, indexing or iterating it
    raises.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<stand-in for {self.__name__}>"

    def __getattr__(self, name: str) -> Any:
        return attribute(self.__name__, name)

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        """Raise `KernelUnavailable`."""
        raise KernelUnavailable(
            f"{self.__name__} cannot run here: its package is missing, and a stand-in without "
            "kernels is in its place"
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


class Declaration(Absent):
    """What modules call at import to declare a kernel, `triton.jit` and the like.

    Applied to a function or a kernel it gives an absent kernel; applied to options, itself.
    """

    def __call__(self, *args: Any, **_kwargs: Any) -> Absent:
        """Declare."""
        match args:
            case [FunctionType() as function]:
                return Absent(f"{function.__module__}.{function.__qualname__}")
            case [Absent() as kernel]:
                return kernel
        return self


class Constant:
    """What kernels are given at compile time, `triton.language.constexpr`: a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


# What is used at import, and so has to do more than raise.
_DECLARED: dict[str, Callable[[str], Any]] = {
    "triton.__version__": lambda _name: "0.0.0",
    "triton.jit": Declaration,
    "triton.autotune": Declaration,
    "triton.heuristics": Declaration,
    "triton.Config": Declaration,
    "triton.language.constexpr": lambda _name: Constant,
}


def attribute(parent: str, name: str) -> Any:
    """What `parent.name` is in a stand-in. Other dunders are missing: no protocol is faked."""
    full_name = f"{parent}.{name}"
    if name.startswith("__") and full_name not in _DECLARED:
        raise AttributeError(f"the stand-in for {parent} has no {name}")
    return _DECLARED.get(full_name, Absent)(full_name)


class StandIn(ModuleType):
    """A module that has every attribute."""

    def __getattr__(self, name: str) -> Any:
        return attribute(self.__name__, name)


class StandInFinder(MetaPathFinder, Loader):
    """Finds and makes stand-ins.

    Attributes:
        roots: the modules that it finds, with every module below them.
    """

    def __init__(self, roots: frozenset[str]) -> None:
        self.roots = roots

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find a module of the roots or above them, a package each."""
        del path, target
        if not self._serves(fullname) and not self._leads_to(fullname):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make a stand-in, or an empty package above one."""
        return StandIn(spec.name) if self._serves(spec.name) else ModuleType(spec.name)

    def _serves(self, name: str) -> bool:
        return any(f"{name}.".startswith(f"{root}.") for root in self.roots)

    def _leads_to(self, name: str) -> bool:
        return any(root.startswith(f"{name}.") for root in self.roots)

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing: attributes answer when they are asked for."""
