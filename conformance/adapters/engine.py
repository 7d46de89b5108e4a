"""An engine as it is installed here: found without importing it, imported late."""

from __future__ import annotations

import importlib
import importlib.util
from importlib import metadata
from pathlib import Path
from typing import Any

from conformance.protocol import Unavailable


def installed(name: str, install: str) -> tuple[str, Path]:
    """The version of an engine and the folder of its package, without importing it.

    Args:
        name: of the engine; in lower case that of its distribution and, with underscores for
            dashes, of its package.
        install: how to get it, for the message.

    Raises:
        Unavailable: it is not installed.
    """
    distribution = name.lower()
    spec = importlib.util.find_spec(distribution.replace("-", "_"))
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise Unavailable(f"{name} is not installed: {install}")
    return version, Path(spec.origin).parent


def imported(name: str, module: str) -> Any:
    """A module of an engine.

    Raises:
        Unavailable: a dependency is absent, or of a release that the engine refuses.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        cause = str(error).partition("\n")[0]
        raise Unavailable(f"{name} lacks something it needs: {cause}") from error
