"""What a verifier does, who has neither the implementation nor the device."""

from conformance.verification.layout import NotAPackage
from conformance.verification.verifier import Verification, verify

__all__ = ["NotAPackage", "Verification", "verify"]
