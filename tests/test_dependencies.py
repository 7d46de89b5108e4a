"""One direction of dependency: reference, then strategies, then conformance, then tests."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FOLDERS = ("reference", "strategies", "conformance")

# What each folder may import beside the standard library and itself.
MAY_IMPORT = {
    "reference": {"torch", "numpy", "safetensors"},
    "strategies": {"reference", "torch", "numpy", "safetensors", "hypothesis"},
}


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports, in functions and for type checking too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                found |= {alias.name.split(".")[0] for alias in node.names}
            case ast.ImportFrom(level=0, module=str(module)):
                found.add(module.split(".")[0])
            case ast.Call(
                func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]
            ):
                found.add(name.split(".")[0])
    return found


def modules(folder: str) -> list[Path]:
    """The Python files of a folder."""
    return sorted((ROOT / folder).rglob("*.py"))


def imports_of(folder: str) -> dict[str, set[str]]:
    """What each file of a folder imports."""
    return {
        str(file.relative_to(ROOT)): imported(file.read_text(encoding="utf-8"))
        for file in modules(folder)
    }


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("import tests", "tests"),
        ("import tests.second as second", "tests"),
        ("from tests import second", "tests"),
        ("from tests.second import SecondEncoder", "tests"),
        ("def f():\n    from tests import second", "tests"),
        ("if TYPE_CHECKING:\n    import tests", "tests"),
        ("import importlib\nimportlib.import_module('tests.second')", "tests"),
    ],
)
def test_every_way_to_import_is_seen(source: str, package: str) -> None:
    """The parser below sees imports wherever they stand, and no others."""
    assert package in imported(source)
    assert package not in imported(source.replace("tests", "others"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_is_there(folder: str) -> None:
    """Every folder has modules, so that the tests below look at something."""
    assert len(modules(folder)) > 5


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_knows_only_what_stands_below_it(folder: str) -> None:
    """`reference` imports neither of the others, `strategies` not `conformance`."""
    allowed = {folder, *MAY_IMPORT[folder], *sys.stdlib_module_names}
    foreign = {file: found - allowed for file, found in imports_of(folder).items()}
    assert {file: found for file, found in foreign.items() if found} == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_imports_tests(folder: str) -> None:
    """No module outside `tests` imports it, or pytest's `conftest`."""
    found = [file for file, names in imports_of(folder).items() if names & {"tests", "conftest"}]
    assert found == []
