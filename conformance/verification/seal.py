"""The seal: digests of every file, and the signature over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance import package
from conformance.document import DocumentError
from conformance.rules import Breach
from conformance.signature import KeyFileError, is_signed_by, payload_of, read_key
from conformance.statement import digest
from conformance.verification.documents import read_envelope
from conformance.verification.layout import Layout, Refused


def check_files(layout: Layout, said: Mapping[str, Mapping[str, Any]]) -> Iterator[Breach]:
    """The files against what the statement says of them."""
    covered = [name for name in layout.sizes if name not in package.SIGNED]
    for name in sorted({*said} - {*covered}):
        yield Breach("PK-01", f"the statement names {name}, which is not there", package.STATEMENT)
    for name in covered:
        if name not in said:
            yield Breach("PK-01", "the statement does not name it", name)
        elif digest(layout.read(name)) != dict(said[name]):
            yield Breach("PK-06", "its size or its digest is not that of the statement", name)


def check_signature(layout: Layout, key: bytes | None) -> Iterator[Breach]:
    """The signature, by the package's own key; and that key, by the one asked for.

    Args:
        layout: of the package.
        key: the public key that the verifier trusts, in PEM; None for any.
    """
    missing = [name for name in (package.ENVELOPE, package.KEY) if name not in layout.sizes]
    if missing:
        yield Breach("SG-01", "the package lacks it: it is not signed", missing[0])
        return
    data, own = layout.read(package.ENVELOPE), layout.read(package.KEY)
    try:
        envelope = payload_of(data, read_envelope(data))
    except Refused as refused:
        yield refused.breach
        return
    except DocumentError as error:
        yield Breach("SG-02", str(error), package.ENVELOPE)
        return
    if envelope.payload != layout.read(package.STATEMENT):
        yield Breach("SG-02", "what it holds is not statement.json", package.ENVELOPE)
    try:
        if not is_signed_by(envelope, read_key(own)):
            yield Breach("SG-03", "key.pub did not make this signature", package.ENVELOPE)
    except KeyFileError as error:
        yield Breach("SG-03", str(error), package.KEY)
    if key is not None and key != own:
        yield Breach("SG-04", "it is not the key that was asked for", package.KEY)
