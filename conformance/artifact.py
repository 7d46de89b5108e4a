"""The artifact: the files that are the implementation, and their digest."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from conformance.protocol import Implementation, Unavailable

# What an installer writes, not the vendor.
_INSTALLED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")


@dataclass(frozen=True)
class Artifact:
    """What is certified.

    Attributes:
        name: of the distribution, or of the implementation if it is none.
        version: of the distribution, or as the implementation declares it.
        kind: `distribution` for the files that a wheel installed, `source` for modules.
        files: how many.
        sha256: over a line `<sha256 of the file>  <path>` for each file, sorted by path.
    """

    name: str
    version: str
    kind: str
    files: int
    sha256: str


def artifact(implementation: Implementation) -> Artifact:
    """The files of an implementation: of its distribution, or else of its own module.

    Raises:
        Unavailable: it has no files that can be read.
    """
    module = type(implementation).__module__.partition(".")[0]
    holders = metadata.packages_distributions().get(module, [])
    for name in (implementation.name, *holders):
        found = _distribution(name)
        if found is not None and (name == implementation.name or module != "conformance"):
            kind, files = _distributed(found)
            return _of(found.name, found.version, kind, files)
    # The suite's own reference, and modules that no distribution holds.
    modules = ("conformance", "reference") if module == "conformance" else (module,)
    files = {path: file for name in modules for path, file in _sources(name).items()}
    return _of(implementation.name, implementation.version, "source", files)


def _of(name: str, version: str, kind: str, files: dict[str, Path]) -> Artifact:
    if not files:
        raise Unavailable(f"{name} {version} has no files that could be certified")
    try:
        lines = [
            f"{hashlib.sha256(files[path].read_bytes()).hexdigest()}  {path}\n"
            for path in sorted(files)
        ]
    except OSError as error:
        raise Unavailable(f"a file of {name} cannot be read: {error}") from None
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    return Artifact(name, version, kind, len(lines), digest)


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _distributed(found: metadata.Distribution) -> tuple[str, dict[str, Path]]:
    """The recorded files of a distribution; of an editable one, its modules."""
    url = json.loads(found.read_text("direct_url.json") or "{}")
    if url.get("dir_info", {}).get("editable"):
        names = (found.read_text("top_level.txt") or "").split()
        return "source", {p: file for name in names for p, file in _sources(name).items()}
    recorded = [path for path in found.files or () if _is_vendors(path)]
    return "distribution", {path.as_posix(): Path(str(path.locate())) for path in recorded}


def _is_vendors(path: metadata.PackagePath) -> bool:
    inside = ".." not in path.parts and path.suffix != ".pyc"
    return inside and path.name not in _INSTALLED


def _sources(name: str) -> dict[str, Path]:
    """The Python files of a module or package."""
    module = sys.modules.get(name)
    spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    if spec is None:
        return {}
    if spec.submodule_search_locations is None:
        return _named([Path(str(spec.origin))], Path(str(spec.origin)).parent)
    found: dict[str, Path] = {}
    for folder in map(Path, spec.submodule_search_locations):
        found |= _named(folder.rglob("*.py"), folder.parent)
    return found


def _named(files: Iterable[Path], folder: Path) -> dict[str, Path]:
    return {PurePosixPath(file.relative_to(folder)).as_posix(): file for file in files}
