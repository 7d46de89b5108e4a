"""Implementations by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from conformance.protocol import FAMILIES, Implementation, Unavailable

GROUP = "step3vl.implementations"

BUILT_IN = {
    name: f"conformance.adapters.{name}:implementation"
    for name in ("exllamav3", "mlx_vlm", "reference", "sglang", "transformers", "vllm")
}

_ATTRIBUTES = ("name", "version", "families", "interface", "build")


def find_implementation(spec: str) -> Implementation:
    """The implementation of a name, an entry point, `module:attribute` or `file.py:attribute`.

    Args:
        spec: the attribute is an implementation, or a callable without arguments that gives one.

    Raises:
        Unavailable: there is none; the message is one line that says what to do.
    """
    found = _found(spec)
    if isinstance(found, type) or not hasattr(found, "build"):
        if not callable(found):
            raise Unavailable(f"{spec} is a {type(found).__name__}, not an implementation")
        found = _called(spec, found)
    _require_protocol(spec, found)
    implementation: Implementation = found
    return implementation


def published() -> dict[str, EntryPoint]:
    """Entry points of installed distributions, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _found(spec: str) -> Any:
    if spec in BUILT_IN:
        return _attribute(*BUILT_IN[spec].split(":"))
    if spec in (entries := published()):
        return _imported(spec, entries[spec].load)
    module, colon, attribute = spec.rpartition(":")
    if not colon:
        names = ", ".join(sorted({*BUILT_IN, *entries}))
        raise Unavailable(
            f"there is no implementation {spec!r}; it is one of {names}, module:attribute "
            "or path/to/file.py:attribute"
        )
    return (
        _from_file(module, attribute) if module.endswith(".py") else _attribute(module, attribute)
    )


def _attribute(module: str, attribute: str) -> Any:
    if not module:
        raise Unavailable(f"there is no module before the colon of :{attribute}")
    return _get(_imported(module, lambda: importlib.import_module(module)), module, attribute)


def _imported(where: str, act: Callable[[], Any]) -> Any:
    """Whatever importing gives; whatever it raises becomes one line."""
    try:
        return act()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too, and what test frameworks skip by
        raise Unavailable(f"cannot import {where}: {_line(error)}") from error


def _called(spec: str, factory: Callable[[], Any]) -> Any:
    try:
        return factory()
    except (KeyboardInterrupt, Unavailable):
        raise
    except BaseException as error:
        raise Unavailable(f"{spec}() gives no implementation: {_line(error)}") from error


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _from_file(file: str, attribute: str) -> Any:
    path = Path(file).resolve()
    if not path.is_file():
        raise Unavailable(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent))
    loader = spec.loader
    _imported(file, lambda: loader.exec_module(module))
    return _get(module, file, attribute)


def _get(module: Any, where: str, attribute: str) -> Any:
    if not hasattr(module, attribute):
        raise Unavailable(f"{where} has no attribute {attribute!r}")
    return getattr(module, attribute)


def _require_protocol(spec: str, found: Any) -> None:
    missing = [name for name in _ATTRIBUTES if not hasattr(found, name)]
    if missing:
        raise Unavailable(f"{spec} is not an implementation: it has no {', '.join(missing)}")
    if not isinstance(found.name, str) or not found.name.isprintable():
        raise Unavailable(f"{spec} has the name {found.name!r}; it is one line of text")
    if not isinstance(found.families, Collection) or isinstance(found.families, str):
        kind = type(found.families).__name__
        raise Unavailable(f"{spec} has families that are a {kind}; it is a tuple of names")
    unknown = [family for family in found.families if family not in FAMILIES]
    if unknown:
        raise Unavailable(
            f"{spec} names the family {unknown[0]!r}; there are {', '.join(FAMILIES)}"
        )
    if not found.families:
        raise Unavailable(f"{spec} names no family; there are {', '.join(FAMILIES)}")
    if found.interface not in ("items", "batch"):
        raise Unavailable(f"{spec} has the interface {found.interface!r}; it is items or batch")
