"""The rules that a package is held to, as data, and what breaks them."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from conformance.document import printable


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        id: permanent, such as `PK-06`.
        title: a few words.
        rule: what must hold, in one sentence.
    """

    id: str
    title: str
    rule: str


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id."""
    text = resources.files("conformance").joinpath("rules.toml").read_text(encoding="utf-8")
    return {name: Rule(name, **fields) for name, fields in tomllib.loads(text).items()}


@dataclass(frozen=True)
class Breach:
    """A place where a package breaks a rule.

    Attributes:
        rule: its id.
        message: what is wrong there.
        file: of the package; empty for the folder itself.
        line: of the file, from 1; 0 if it has none.
    """

    rule: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = self.file or "."
        place += f":{self.line}" if self.line else ""
        return f"{self.rule} {printable(place)}: {printable(self.message)}"
