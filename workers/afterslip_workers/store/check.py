"""Looking over a whole store: every file against the manifest that promised it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from afterslip.errors import SpecError
from afterslip_workers.modelling.cache import META, find
from afterslip_workers.progress import MANIFEST
from afterslip_workers.store import checkpoint, durable, paths
from afterslip_workers.store.commit import moves_of
from afterslip_workers.store.place import Place, read_json

_CHUNK = re.compile(r"(?P<array>[a-z_]+)/c/(?P<group>\d+)(/.*)?")
_DESCRIPTION = "zarr.json"

# what is lost until it is repaired, and what is only in the way
HARM = frozenset({"damaged", "missing", "model", "upload", "unreadable"})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was promised.

    Attributes
    ----------
    kind : "damaged", "missing" (files of a campaign), "unreadable" (a campaign that
        says nothing of itself), "model", "upload" (damaged ones), "extra" (files that
        nobody promised), "unproven" (a group without a manifest), "orphan" (an attempt
        that nobody waits for), "waiting" (a finished attempt that the database does
        not know), "checkpoint" (a damaged one).
    key : file or folder.
    campaign, group, digest : where it belongs, and the checksum that it should have.
    """

    kind: str
    key: str
    campaign: str | None = None
    group: int | None = None
    digest: str | None = None

    @property
    def harmful(self) -> bool:
        """Whether something is lost."""
        return self.kind in HARM

    @property
    def is_coordinate(self) -> bool:
        """Whether it is a file of a campaign's store that no group has written."""
        return (
            self.group is None
            and self.campaign is not None
            and self.key.startswith(f"{paths.greens(self.campaign)}/")
        )

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "harmful": self.harmful}


@dataclass(slots=True)
class Report:
    """What was looked at, and what was found."""

    files: int = 0
    bytes: int = 0
    groups: int = 0
    campaigns: int = 0
    models: int = 0
    findings: list[Finding] = field(default_factory=list)
    # where each checksum was found whole, for repairs
    known: dict[str, str] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether nothing is lost."""
        return not any(finding.harmful for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "sound": self.sound,
            "files": self.files,
            "bytes": self.bytes,
            "groups": self.groups,
            "campaigns": self.campaigns,
            "models": self.models,
            "findings": [finding.as_json() for finding in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Expected:
    """What a database knows of a store; without one the store speaks for itself.

    Attributes
    ----------
    manifests : of accepted groups, by campaign and number.
    attempts : tokens of attempts whose folders are still needed.
    settled : tokens of attempts that ended and were not accepted.
    """

    manifests: Mapping[tuple[str, int], dict[str, Any]]
    attempts: frozenset[str]
    settled: frozenset[str]


Told = Callable[[str], None]


def check(
    place: Place, expected: Expected | None = None, told: Told = lambda _: None
) -> Report:
    """Read every file of a store and compare it with what was promised.

    Parameters
    ----------
    told : called with the name of what is being looked at.
    """
    report = Report()
    for digest in _shown(place.names(paths.MODELS)):
        told(f"model {digest[:12]}")
        _model(place, digest, report)
    for name in _shown(place.names(paths.FILES)):
        told(f"upload {name[:12]}")
        _file(
            place, paths.file(name), name, Finding("upload", paths.file(name)), report
        )
    for campaign in _shown(place.names(paths.CAMPAIGNS)):
        told(f"campaign {campaign}")
        report.campaigns += 1
        _campaign(place, campaign, expected, report)
    report.findings += _attempts(place, expected)
    report.findings += _checkpoints(place)
    return report


def _shown(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(".")]


def _model(place: Place, digest: str, report: Report) -> None:
    report.models += 1
    if find(place, digest) is None:
        report.findings.append(Finding("model", paths.model(digest)))
        return
    meta = read_json(place, f"{paths.model(digest)}/{META}")
    key = f"{paths.model(digest)}/{meta.get('file', 'model.npz')}" if meta else ""
    report.files += 1
    report.bytes += place.size(key) or 0


def _file(
    place: Place, key: str, digest: str, otherwise: Finding, report: Report
) -> bool:
    """Compare one file; tell whether it is whole."""
    size = place.size(key)
    report.files += 1
    if size is None:
        if otherwise.kind == "damaged":
            facts = otherwise.campaign, otherwise.group, otherwise.digest
            otherwise = Finding("missing", key, *facts)
        report.findings.append(otherwise)
        return False
    report.bytes += size
    if place.sha256(key) != digest:
        report.findings.append(otherwise)
        return False
    report.known.setdefault(digest, key)
    return True


def _campaign(
    place: Place, campaign: str, expected: Expected | None, report: Report
) -> None:
    facts = read_json(place, paths.model_facts(campaign))
    root = paths.greens(campaign)
    if (
        not isinstance(facts, dict)
        or read_json(place, f"{root}/{_DESCRIPTION}") is None
    ):
        report.findings.append(
            Finding("unreadable", paths.campaign(campaign), campaign)
        )
        return
    promised = {f"{root}/{_DESCRIPTION}"}
    for name, digest in facts.get("files", {}).items():
        key = f"{root}/{name}"
        promised.add(key)
        damage = Finding("damaged", key, campaign, None, digest)
        _file(place, key, digest, damage, report)
    for group, manifest in _manifests(place, campaign, expected):
        report.groups += group is not None
        for _, key, digest in moves_of(campaign, manifest):
            promised.add(key)
            damage = Finding("damaged", key, campaign, group, digest)
            _file(place, key, digest, damage, report)
    report.findings += _unpromised(place, campaign, promised, bool(facts.get("files")))


def _manifests(
    place: Place, campaign: str, expected: Expected | None
) -> list[tuple[int | None, dict[str, Any]]]:
    """Manifests of a campaign with their group; None: an inversion's."""
    groups: dict[int, dict[str, Any]] = {}
    found: list[tuple[int | None, dict[str, Any]]] = []
    for name in _shown(place.names(f"{paths.campaign(campaign)}/manifests")):
        stem = name.removesuffix(".json")
        manifest = read_json(place, paths.accepted_manifest(campaign, stem))
        if not isinstance(manifest, dict) or stem == "model":
            continue
        if stem.isdecimal():
            groups[int(stem)] = manifest
        else:
            found.append((None, manifest))
    if expected is not None:
        # the database is the truth: what it accepted counts
        for (owner, group), manifest in expected.manifests.items():
            if owner == campaign:
                groups[group] = manifest
    return [*groups.items(), *found]


def _unpromised(
    place: Place, campaign: str, promised: set[str], complete: bool
) -> Iterator[Finding]:
    """Find files of a campaign that no manifest speaks of."""
    root = paths.greens(campaign)
    unproven = set()
    for key in place.keys(root):
        if key in promised:
            continue
        chunk = _CHUNK.fullmatch(key.removeprefix(f"{root}/"))
        if chunk and chunk["array"] == "mode_count":
            unproven.add(int(chunk["group"]))
        elif complete and not key.endswith(_DESCRIPTION):
            yield Finding("extra", key, campaign)
    for group in sorted(unproven):
        yield Finding("unproven", root, campaign, group)


def _attempts(place: Place, expected: Expected | None) -> Iterator[Finding]:
    """Find attempts that nobody waits for; without a database all may be wanted."""
    for token in _shown(place.names(paths.ATTEMPTS)):
        key = paths.attempt(token)
        if expected is None or token in expected.attempts:
            continue
        stored = place.size(f"{key}/{MANIFEST}") is not None
        known = token in expected.settled
        yield Finding("waiting" if stored and not known else "orphan", key)


def _checkpoints(place: Place) -> Iterator[Finding]:
    for name in _shown(place.names(paths.CHECKPOINTS)):
        folder = paths.checkpoint(name)
        known = read_json(place, f"{folder}/{checkpoint.LATEST}") or {}
        key = f"{folder}/{known.get('file')}"
        if place.size(key) is None or place.sha256(key) != known.get("sha256"):
            yield Finding("checkpoint", folder)


def mend(place: Place, report: Report) -> dict[str, str]:
    """Mend what the store itself can mend; return by key what was done.

    A damaged file comes back from any other place that holds the same content, as
    the stores of campaigns do that share sources; coordinates are derived anew.
    Orphans and damaged checkpoints are removed, damaged models as well: the next
    campaign builds them anew.
    """
    done = {}
    derive: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.kind in {"damaged", "missing"}:
            source = report.known.get(finding.digest or "")
            if source is not None and _copied(place, source, finding):
                done[finding.key] = "copied from where it is whole"
            elif finding.is_coordinate:
                derive.setdefault(str(finding.campaign), []).append(finding)
        elif finding.kind in {"orphan", "checkpoint", "model"}:
            place.remove(finding.key)
            done[finding.key] = "removed"
    for campaign, lost in derive.items():
        for finding in _derived(place, campaign, lost):
            done[finding.key] = "derived anew"
    return done


def _copied(place: Place, source: str, finding: Finding) -> bool:
    with place.local(source) as path:
        place.upload(path, finding.key)
    return place.sha256(finding.key) == finding.digest


def _derived(place: Place, campaign: str, lost: list[Finding]) -> Iterator[Finding]:
    """Write files of coordinates anew, if they come out as they were."""
    # imported late: it needs the solver and zarr
    from afterslip_workers.modelling.coordinates import rebuild

    with TemporaryDirectory(prefix="afterslip-greens-") as folder:
        made = Path(folder) / "greens.zarr"
        try:
            rebuild(place, campaign, made)
        except (KeyError, SpecError):
            return
        for finding in lost:
            path = made / finding.key.removeprefix(f"{paths.greens(campaign)}/")
            if path.is_file() and durable.sha256(path) == finding.digest:
                place.upload(path, finding.key)
                yield finding
