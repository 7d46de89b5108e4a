"""Signatures: DSSE envelopes with Ed25519, made and checked offline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from conformance.document import DocumentError, write_json

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class KeyFileError(ValueError):
    """A key cannot be used; the message says why."""


def generate(file: Path) -> Path:
    """Write a new private key, which only its owner may read, and its public key beside it.

    Returns:
        The file of the public key, `FILE.pub`.

    Raises:
        OSError: a file is there already, or cannot be written.
    """
    public = file.with_name(f"{file.name}.pub")
    signer = CryptoSigner.generate_ed25519()
    pair = _private(signer.private_bytes)
    for path, data, mode in (
        (file, signer.private_bytes, 0o600),
        (public, pem(pair.public_key()), 0o644),
    ):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(opened, "wb") as stream:
            stream.write(data)
    return public


def sign(payload: bytes, private_key: bytes) -> tuple[bytes, bytes]:
    """Sign a statement.

    Args:
        payload: the statement.
        private_key: in PEM, without a password.

    Returns:
        The envelope, and the public key in PEM.

    Raises:
        KeyFileError: it is no such key.
    """
    key = _private(private_key)
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    return write_json(envelope.to_dict()), pem(key.public_key())


def _private(data: bytes) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFileError("it is no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError("it is a private key, but not of Ed25519")
    return key


def read_key(public_key: bytes) -> SSlibKey:
    """The public key of a PEM text.

    Raises:
        KeyFileError: it is none of Ed25519, or not in the one form that `generate` writes.
    """
    try:
        key = load_pem_public_key(public_key)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyFileError("it is no public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError("it is a public key, but not of Ed25519")
    if pem(key) != public_key:
        raise KeyFileError("it is not in the form that keygen writes")
    return SSlibKey.from_crypto(key)


def payload_of(envelope: bytes, parsed: dict[str, Any]) -> Envelope:
    """The envelope of a text that has the shape of one.

    Raises:
        DocumentError: it is not in the one form that `sign` writes.
    """
    try:
        found = Envelope.from_dict(parsed)
        same = write_json(found.to_dict()) == envelope
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DocumentError(f"it is no DSSE envelope: {error}") from None
    if not same:
        raise DocumentError("it is not in the form that sign writes")
    return found


def is_signed_by(envelope: Envelope, key: SSlibKey) -> bool:
    """Whether a key made the signature of an envelope."""
    try:
        envelope.verify([key], threshold=1)
    except VerificationError:
        return False
    return True


def pem(key: Ed25519PublicKey) -> bytes:
    """A public key as text."""
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
