"""A bad package: one change to a good one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.changes import Change


@dataclass(frozen=True)
class Bad:
    """One change to a good package, and the rule that it breaks.

    Attributes:
        name: of the change.
        rule: that must be cited.
        change: made to a copy.
        of: the good package.
        file: that must be cited with the rule.
        also: rules that the change cannot but break too.
    """

    name: str
    rule: str
    change: Change
    of: str = "passing"
    file: str = ""
    also: tuple[str, ...] = ()
