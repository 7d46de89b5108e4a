"""The files of an untrusted package: looked at before they are opened, bounded before read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from conformance import package
from conformance.rules import Breach

KIB, MIB = 1 << 10, 1 << 20

_LARGEST = {
    package.STATEMENT: 2 * MIB,
    package.ENVELOPE: 4 * MIB,
    package.KEY: KIB,
    package.RESULTS: 16 * MIB,
    package.ENVIRONMENT: MIB,
    package.REPORT: MIB,
    package.JUNIT: 64 * MIB,
    package.WAIVERS: MIB,
}
_LARGEST_TENSORS = 64 * MIB
_LARGEST_PACKAGE = 1024 * MIB
_MOST_FILES = 2000

_FOLDERS = (package.FAILURES, package.WITNESS)
_TENSORS = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,199}\.safetensors")


class NotAPackage(Exception):  # noqa: N818
    """A folder holds nothing that says it is a package; the message says what it lacks."""


class Refused(Exception):  # noqa: N818
    """A file breaks a rule, so that nothing more can be said of it."""

    def __init__(self, breach: Breach) -> None:
        super().__init__(str(breach))
        self.breach = breach


@dataclass(frozen=True)
class Layout:
    """The files of a package that may be opened.

    Attributes:
        folder: of the package.
        sizes: in bytes, by path in the package.
        breaches: what else was found.
    """

    folder: Path
    sizes: dict[str, int]
    breaches: tuple[Breach, ...]

    def read(self, name: str) -> bytes:
        """The content of a file; never more than its size when it was looked at.

        Raises:
            Refused: it cannot be read, or is no plain file any more.
        """
        try:
            opened = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(opened, "rb") as stream:
                if stat.S_ISREG(os.fstat(opened).st_mode):
                    return stream.read(self.sizes[name])
        except OSError as error:
            raise Refused(Breach("PK-02", f"it cannot be read: {error.strerror}", name)) from None
        raise Refused(Breach("PK-02", "it is no plain file any more", name))


def read_layout(folder: Path) -> Layout:
    """Look at a folder without opening anything in it.

    Raises:
        NotAPackage: it is no folder, or has no statement.
    """
    if not folder.is_dir():
        raise NotAPackage(f"{folder} is no folder")
    if not os.path.lexists(folder / package.STATEMENT):
        raise NotAPackage(f"{folder} has no {package.STATEMENT}")
    sizes: dict[str, int] = {}
    breaches: list[Breach] = []
    for name, entry in _entries(folder):
        if len(sizes) + len(breaches) >= _MOST_FILES:
            breaches.append(Breach("PK-01", f"it has more than {_MOST_FILES} files"))
            break
        breach = _looked_at(name, entry)
        if breach is None:
            sizes[name] = entry.stat(follow_symlinks=False).st_size
        else:
            breaches.append(breach)
    if sum(sizes.values()) > _LARGEST_PACKAGE:
        breaches.append(Breach("PK-03", f"all files together exceed {_LARGEST_PACKAGE} bytes"))
    return Layout(folder, dict(sorted(sizes.items())), tuple(breaches))


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry with its path in the package, those of the folders that may be there too."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in _FOLDERS and entry.is_dir(follow_symlinks=False):
                with os.scandir(entry.path) as inner:
                    yield from ((f"{entry.name}/{found.name}", found) for found in inner)
            else:
                yield entry.name, entry


def _looked_at(name: str, entry: os.DirEntry[str]) -> Breach | None:
    if not entry.is_file(follow_symlinks=False):
        return Breach("PK-02", "it is neither a plain file nor a folder of a package", name)
    inside, _, own = name.rpartition("/")
    largest = _LARGEST_TENSORS if inside and _TENSORS.fullmatch(own) else _LARGEST.get(name)
    if largest is None:
        return Breach("PK-01", "no package has such a file", name)
    size = entry.stat(follow_symlinks=False).st_size
    if size > largest:
        return Breach("PK-03", f"it has {size} bytes; at most {largest} can be right", name)
    return None
