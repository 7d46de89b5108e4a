"""Built-in implementations whose engine is not installed, or not of use here."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.protocol import Unavailable
from conformance.registry import BUILT_IN, find_implementation

ENGINES = sorted(set(BUILT_IN) - {"reference"})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pretend that nothing, or a version of everything, is installed in an empty folder."""

    def pretend(version: str | None) -> None:
        spec = SimpleNamespace(
            origin="/nowhere/__init__.py", submodule_search_locations=["/nowhere"]
        )
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: version and spec)

        def read(name: str) -> str:
            if version is None:
                raise metadata.PackageNotFoundError(name)
            return version

        monkeypatch.setattr(metadata, "version", read)

    return pretend


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed(name: str, installed: Any) -> None:
    """One line says so and how to get it."""
    installed(None)
    with pytest.raises(Unavailable, match=r"is not installed: .*pip install") as raised:
        find_implementation(name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["sglang", "vllm", "mlx_vlm", "transformers"])
def test_a_release_without_a_model_is_named(name: str, installed: Any) -> None:
    """One line names the release and what to get instead."""
    installed("0.1.2")
    with pytest.raises(Unavailable, match=r"0\.1\.2.*(tox|pip install)"):
        find_implementation(name)


def test_exllamav3_without_cuda(installed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is CUDA only, and says that rather than fail to import."""
    installed("1.6.5")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(Unavailable, match=r"exllamav3 1\.6\.5 needs CUDA"):
        find_implementation("exllamav3")
