"""A pytest plugin that makes certification quick and any checkout clean: `-p tests.quick_certify`.

No option can do that, and what the plugin changes, `verify` notices unless it is changed there too.
"""

from __future__ import annotations

import dataclasses

import conformance.export
from conformance.environment import suite
from conformance.search import PROFILES

SUITE = dataclasses.replace(suite(), commit="0123456789abcdef" * 2 + "01234567", clean=True)

PROFILES["certify"] = 1
conformance.export.suite = lambda: SUITE
