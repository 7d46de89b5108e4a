"""The verifier: every rule, in an order in which nothing is trusted before it was looked at."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from conformance import package
from conformance.answers import Answers
from conformance.certificate import Certificate, Grade, certificate
from conformance.environment import suite
from conformance.protocol import Interface
from conformance.results import Results
from conformance.rules import Breach
from conformance.statement import statement
from conformance.verification.completeness import check_footer, check_lines, check_verdicts
from conformance.verification.documents import Documents, read_documents
from conformance.verification.excuses import check_waivers
from conformance.verification.failures import check_failures
from conformance.verification.layout import Layout, Refused, read_layout
from conformance.verification.provenance import (
    check_environment,
    check_profile,
    check_versions,
)
from conformance.verification.recomputation import (
    Recomputed,
    read_all_answers,
    recompute,
    together,
)
from conformance.verification.seal import check_files, check_signature
from conformance.waivers import Waiver, WaiverError, read_waivers, used


@dataclass(frozen=True)
class Verification:
    """What a verifier found.

    Attributes:
        breaches: of rules; none if the package is accepted.
        results: of the run, None if they could not be read.
        certificate: what they come to, None if that could not be said.
        recomputed: the challenge, None if the package was refused before.
        subject: what the vendor says was checked, and the digest of its files.
        notes: what an accepted package does not prove, a line each.
    """

    breaches: tuple[Breach, ...]
    results: Results | None = None
    certificate: Certificate | None = None
    recomputed: Recomputed | None = None
    subject: str = ""
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether no rule is broken."""
        return not self.breaches


def verify(
    folder: Path,
    *,
    key: bytes | None = None,
    challenge: str | None = None,
    families: Collection[str] = (),
    dtypes: Collection[str] = (),
    today: datetime.date | None = None,
) -> Verification:
    """Verify a package.

    Args:
        folder: of the package, which is not trusted.
        key: the public key that must have signed it, in PEM; None for any.
        challenge: the nonce that must have been answered; None for any.
        families: that must be certified; none for all that the implementation declares.
        dtypes: that must have been checked, beside whichever were.
        today: on which no waiver may have expired; None for this day.

    Raises:
        NotAPackage: the folder holds nothing that says it is one.
    """
    layout = read_layout(folder)
    if layout.breaches:
        return Verification(layout.breaches)
    day = today or datetime.datetime.now(tz=datetime.UTC).date()
    try:
        return _verified(layout, key, challenge, families, dtypes, day)
    except Refused as refused:
        return Verification((refused.breach,))


def _verified(
    layout: Layout,
    key: bytes | None,
    challenge: str | None,
    families: Collection[str],
    dtypes: Collection[str],
    day: datetime.date,
) -> Verification:
    documents = read_documents(layout)
    waivers, data = _waivers(layout)
    results, excused = documents.results, used(waivers, documents.results)
    found = certificate(results, excused)
    answers = list(read_all_answers(layout, results, documents.claims["challenge"], challenge))
    breaches = [
        *check_files(layout, documents.claims["files"]),
        *check_signature(layout, key),
        *check_versions(results.header),
        *check_profile(results.header),
        *check_environment(results.header, documents.environment),
        *check_lines(results, documents.places),
        *check_verdicts(results, documents.places),
        *check_footer(results),
        *check_failures(layout, results, documents.places),
        *check_waivers(waivers, data, results, day),
        *_check_claim(documents, found),
        *_check_core(documents, found, families, dtypes),
        *_check_statement(documents, waivers),
        *(answer for answer in answers if isinstance(answer, Breach)),
    ]
    if breaches:
        return Verification(tuple(breaches), results, found)
    interface = cast(Interface, results.header.implementation.interface)
    recomputed = together(
        recompute(answer, interface, excused, answer.family in found.certified)
        for answer in answers
        if isinstance(answer, Answers)
    )
    return Verification(
        recomputed.breaches,
        results,
        found,
        recomputed,
        _subject(documents),
        tuple(_notes(documents, waivers, recomputed, key, challenge)),
    )


def _waivers(layout: Layout) -> tuple[tuple[Waiver, ...], bytes]:
    if package.WAIVERS not in layout.sizes:
        return (), b""
    data = layout.read(package.WAIVERS)
    try:
        return read_waivers(data), data
    except WaiverError as error:
        raise Refused(Breach("WA-01", str(error), package.WAIVERS)) from None


def _check_claim(documents: Documents, found: Certificate) -> Iterator[Breach]:
    claimed = documents.statement["predicate"]["result"]
    if claimed != found.result:
        message = f"it claims {claimed}; the lines make {found.result}"
        yield Breach("LV-01", message, package.STATEMENT)
    said = {name: Grade(**grade) for name, grade in documents.claims["families"].items()}
    for family in sorted({*said, *found.grades}):
        one, other = said.get(family, "nothing"), found.grades.get(family, "nothing")
        if one != other:
            message = f"it claims {one} for {family}; the lines make {other}"
            yield Breach("LV-01", message, package.STATEMENT)
    results = documents.results
    good = found.result != "FAILED" and not results.footer.complaints
    if (results.footer.status == 0) != good:
        message = f"the exit status {results.footer.status} does not follow from the lines"
        yield Breach("CT-07", message, package.RESULTS, len(results.lines) + 2)


def _check_core(
    documents: Documents, found: Certificate, families: Collection[str], dtypes: Collection[str]
) -> Iterator[Breach]:
    results, settings = documents.results, documents.results.header.settings
    for asked in (*families, *dtypes):
        if asked not in (*settings.families, *settings.dtypes):
            yield Breach("LV-02", f"the package is not of {asked}", package.STATEMENT)
    for line in results.lines:
        if line.family not in (families or settings.families) or line.level != "core":
            continue
        if found.standings.get(line.key) == "failed":
            message = f"{' '.join(line.key)} is core, and {line.verdict}"
            yield Breach("LV-02", message, package.RESULTS, documents.places[line.key])


def _check_statement(documents: Documents, waivers: tuple[Waiver, ...]) -> Iterator[Breach]:
    """The statement, made anew from everything else, against the one that is there."""
    said, claims = documents.statement["predicate"], documents.claims
    anew = statement(
        documents.statement["subject"][0],
        documents.results,
        waivers,
        claims["challenge"],
        claims["files"],
    )["predicate"]
    for name in ("passedTests", "warnedTests", "failedTests"):
        if said[name] != anew[name]:
            yield Breach("LV-01", f"{name} is not what the lines make", package.STATEMENT)
    if said["configuration"] != anew["configuration"]:
        message = "contract or noise table are not the verifier's"
        yield Breach("PV-01", message, package.STATEMENT)
    for name, value in anew["conformance"].items():
        if name != "families" and claims[name] != value:
            yield Breach("LV-03", f"{name} is not what the other files say", package.STATEMENT)


def _subject(documents: Documents) -> str:
    said = documents.statement["subject"][0]
    notes = said["annotations"]
    what = f"{notes['kind']} of {notes['files']} files"
    return f"{said['name']} {notes['version']}, {what}, sha256 {said['digest']['sha256']}"


def _notes(
    documents: Documents,
    waivers: tuple[Waiver, ...],
    recomputed: Recomputed,
    key: bytes | None,
    challenge: str | None,
) -> Iterator[str]:
    if key is None:
        yield "whose key it is was not asked: give the vendor's with --key"
    if challenge is None:
        yield "whose nonce it is was not asked: give yours with --challenge"
    if recomputed.excused:
        yield f"wrong answers to the challenge that waivers excuse: {recomputed.excused}"
    if recomputed.uncertified:
        yield f"wrong answers of families that are not certified: {recomputed.uncertified}"
    header, own = documents.results.header, suite().commit
    if header.suite.commit != own:
        yield f"the suite stood at commit {header.suite.commit}, here it stands at {own}"
    if header.implementation.replacements:
        yield f"parts were replaced: {'; '.join(header.implementation.replacements)}"
    yield "report.html and junit.xml were hashed, not read"
    yield (
        "verdicts on all but the challenge are the vendor's word"
        + (f"; waived failures: {len(waivers)}" if waivers else "")
    )
