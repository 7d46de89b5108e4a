"""The templates of pages, tables and badges."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """The suite's templates; whatever a value holds is text in them, never markup."""
    return Environment(
        loader=PackageLoader("conformance"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
