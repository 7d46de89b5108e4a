"""The saved cases of a package, which are hashed and never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from conformance import package
from conformance.results import Key, Results
from conformance.rules import Breach
from conformance.tensorfile import read_tensors
from conformance.verification.layout import Layout
from strategies.casefile import digest_of


def check_failures(layout: Layout, results: Results, places: Mapping[Key, int]) -> Iterator[Breach]:
    """Every failed check's case is there, has its digest, and nothing else is."""
    named: dict[str, str] = {}
    for line in results.lines:
        for finding in line.failures:
            file = finding.file
            if PurePosixPath(file).parent != PurePosixPath(package.FAILURES):
                message = f"{finding.check}: its case is not saved in {package.FAILURES}/"
                yield Breach("CT-09", message, package.RESULTS, places[line.key])
            elif file not in layout.sizes:
                message = f"{finding.check}: its case {file} is not there"
                yield Breach("CT-09", message, package.RESULTS, places[line.key])
            elif named.setdefault(file, finding.digest) != finding.digest:
                message = f"{finding.check}: its case {file} is another's too"
                yield Breach("CT-09", message, package.RESULTS, places[line.key])
    saved = [name for name in layout.sizes if name.startswith(f"{package.FAILURES}/")]
    for name in saved:
        if name not in named:
            yield Breach("CT-09", "it belongs to no failed check", name)
            continue
        try:
            found = read_tensors(layout.read(name))
            digest = digest_of(found.metadata, found.tensors)
        except (ValueError, TypeError, RuntimeError) as error:
            yield Breach("CT-09", str(error), name)
        else:
            if digest != named[name]:
                yield Breach("CT-09", f"its digest is {digest}, not {named[name]}", name)
