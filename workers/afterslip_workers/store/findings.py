"""What a look over a store can find, and the report that lists it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from afterslip_workers.messages import Manifest
from afterslip_workers.store import paths

# what is lost, or cannot be verified, until it is repaired; others are notes
HARM = frozenset(
    {"damaged", "missing", "model", "upload", "unreadable", "unproven", "checksums"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was promised.

    Attributes
    ----------
    kind : "damaged", "missing" (files of a campaign), "unreadable" (a campaign that
        says nothing of itself), "model", "upload" (damaged or missing ones),
        "unproven" (a group or inversion without manifest and checksums, which cannot
        be verified), "checksums" (a store's checksums that are missing or wrong),
        "manifest" (one that is missing or wrong, of files that are whole), "extra"
        (files that nobody promised), "unaccepted" (files of a group that the
        database has not accepted), "orphan" (an attempt that nobody waits for),
        "waiting" (a finished attempt that the database does not know), "checkpoint"
        (a damaged one).
    key : file or folder.
    campaign, group, inversion, digest : where it belongs, and the checksum that it
        should have.
    """

    kind: str
    key: str
    campaign: str | None = None
    group: int | None = None
    digest: str | None = None
    inversion: str | None = None

    @property
    def harmful(self) -> bool:
        """Whether something is lost, or cannot be verified."""
        return self.kind in HARM

    @property
    def is_coordinate(self) -> bool:
        """Whether it is a file of a campaign's store that no group has written."""
        return (
            self.accepted_as is None
            and self.campaign is not None
            and self.key.startswith(f"{paths.greens(self.campaign)}/")
        )

    @property
    def accepted_as(self) -> str | None:
        """Name of the manifest that promised it, None for what no attempt wrote."""
        if self.group is not None:
            return str(self.group)
        return None if self.inversion is None else f"inversion-{self.inversion}"

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "harmful": self.harmful}


@dataclass(slots=True)
class Report:
    """What was looked at, and what was found.

    Attributes
    ----------
    groups : compared with a manifest or with checksums.
    unverified : groups and inversions that could not be compared with anything.
    """

    files: int = 0
    bytes: int = 0
    groups: int = 0
    unverified: int = 0
    campaigns: int = 0
    models: int = 0
    findings: list[Finding] = field(default_factory=list)
    # where each checksum was found whole, for repairs
    known: dict[str, str] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        """Add another report to this one."""
        for name in ("files", "bytes", "groups", "unverified", "campaigns", "models"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.findings += other.findings
        self.known = {**other.known, **self.known}

    @property
    def lost(self) -> bool:
        """Whether something is lost that was promised."""
        return any(f.harmful and f.kind != "unproven" for f in self.findings)

    @property
    def sound(self) -> bool:
        """Whether nothing is lost and everything could be verified."""
        return not any(finding.harmful for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "sound": self.sound,
            "files": self.files,
            "bytes": self.bytes,
            "groups": self.groups,
            "unverified": self.unverified,
            "campaigns": self.campaigns,
            "models": self.models,
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What a database knows of a store; without one the store speaks for itself.

    Attributes
    ----------
    manifests : of what was accepted, by campaign and then by the name under which
        the campaign stores it, see :func:`commit.name_of`.
    uploads : digests of uploaded files, hexadecimal.
    attempts : tokens of attempts whose folders are still needed.
    settled : tokens of attempts that ended and were not accepted.
    deleted : campaigns that nobody needs any more; they are not compared.
    """

    manifests: Mapping[str, Mapping[str, Manifest]]
    uploads: frozenset[str]
    attempts: frozenset[str]
    settled: frozenset[str]
    deleted: frozenset[str] = frozenset()
