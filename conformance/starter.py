"""Starting points for vendors: adapters that run at once, with the reference inside."""

from __future__ import annotations

import importlib.util
import keyword
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template

from conformance.protocol import Interface

_TENSORS = {"step3": "vision_model.embeddings.patch_embedding.weight"}
_TENSOR = "vision_model.conv1.weight"


class StarterError(ValueError):
    """A starting point cannot be written; the message says what to do."""


def write_starter(folder: Path, name: str, families: Sequence[str], interface: Interface) -> Path:
    """Write the adapter `NAME.py`, and never over another file.

    Args:
        folder: where.
        name: of the implementation, the module and the attribute in it.
        families: that it declares.
        interface: that it declares.

    Raises:
        StarterError: the name cannot be a module of its own, or the file is there already or
            cannot be written.
    """
    file = folder / f"{name}.py"
    if not name.isidentifier() or keyword.iskeyword(name):
        raise StarterError(f"{name!r} is no name for a Python module: use letters, digits and _")
    if not file.exists() and importlib.util.find_spec(name) is not None:
        raise StarterError(
            f"{file} would hide the installed module {name}: choose another name, "
            f"such as {name}_adapter"
        )
    text = _starter(name, families, interface)
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        raise StarterError(f"{file} is there already: choose another name or delete it") from None
    except OSError as error:
        raise StarterError(f"{file} cannot be written: {error.strerror}") from None
    return file


def _starter(name: str, families: Sequence[str], interface: Interface) -> str:
    template = resources.files("conformance").joinpath("starters", f"{interface}.py.txt")
    return Template(template.read_text(encoding="utf-8")).substitute(
        name=name,
        families=tuple(families),
        choices=" or ".join(families),
        tensor=_TENSORS.get(families[0], _TENSOR),
    )
