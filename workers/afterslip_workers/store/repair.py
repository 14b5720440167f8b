"""Repair of what a look over a store has found, as far as the store can do it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from afterslip import integrity
from afterslip.errors import SpecError
from afterslip_workers.messages import GroupManifest
from afterslip_workers.store import commit, durable, paths
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.check import recorded
from afterslip_workers.store.commit import facts_of, moves_of
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.findings import Expected, Finding, Report

# of a backend and a campaign, into a folder
Rebuild = Callable[[StoreBackend, str, Path], None]


def repair(
    backend: StoreBackend,
    report: Report,
    expected: Expected | None = None,
    *,
    rebuild: Rebuild,
) -> dict[str, str]:
    """Repair what the store itself can repair; return by key what was done.

    A damaged file comes back from any other place that holds the same content, as
    the stores of campaigns do that share sources; coordinates are derived anew.
    Manifests are written anew from the database, and checksums from manifests.
    Orphans and damaged checkpoints are removed, damaged models as well: the next
    campaign builds them anew.

    Parameters
    ----------
    expected : what the database says now, after the look.
    rebuild : writes a campaign's ``greens.zarr`` as it is before any result.
    """
    done = {}
    derive: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.kind in {"damaged", "missing"}:
            source = report.known.get(finding.digest or "")
            if source is not None and _copied(backend, source, finding):
                done[finding.key] = "copied from where it is whole"
            elif finding.is_coordinate:
                derive.setdefault(str(finding.campaign), []).append(finding)
        elif finding.kind == "manifest" and expected is not None:
            if _recorded(backend, finding, expected):
                done[finding.key] = "written from the database"
        elif finding.kind == "checksums":
            if _summed(backend, finding, expected):
                done[finding.key] = "written from the manifest"
        elif finding.kind in {"orphan", "checkpoint", "model"}:
            backend.remove(finding.key)
            done[finding.key] = "removed"
    for campaign, lost in derive.items():
        for finding in _derived(backend, campaign, lost, rebuild):
            done[finding.key] = "derived anew"
    return done


def _copied(backend: StoreBackend, source: str, finding: Finding) -> bool:
    with backend.local(source) as path:
        backend.upload(path, finding.key)
    return backend.sha256(finding.key) == finding.digest


def _recorded(backend: StoreBackend, finding: Finding, expected: Expected) -> bool:
    """Write a manifest that the database has."""
    manifests = expected.manifests.get(str(finding.campaign), {})
    manifest = manifests.get(finding.accepted_as or "")
    if manifest is None:
        return False
    backend.write(finding.key, json.dumps(manifest.as_json(), sort_keys=True).encode())
    return True


def _summed(backend: StoreBackend, finding: Finding, expected: Expected | None) -> bool:
    """Write checksums anew from the manifest, or from the campaign's description."""
    campaign = str(finding.campaign)
    if finding.group is None:
        try:
            files = facts_of(backend, campaign).get("files")
        except StoreError:
            return False
        if files:
            backend.write(finding.key, integrity.write_checksums(campaign, files))
        return bool(files)
    name = str(finding.group)
    manifest = recorded(backend, paths.accepted_manifest(campaign, name))
    if expected is not None and campaign in expected.manifests:
        manifest = expected.manifests[campaign].get(name)
    if not isinstance(manifest, GroupManifest):
        return False
    commit.write_checksums(backend, campaign, manifest, moves_of(campaign, manifest))
    return True


def _derived(
    backend: StoreBackend, campaign: str, lost: list[Finding], rebuild: Rebuild
) -> Iterator[Finding]:
    """Write files of coordinates anew, if they come out as they were."""
    with TemporaryDirectory(prefix="afterslip-greens-") as folder:
        made = Path(folder) / "greens.zarr"
        try:
            rebuild(backend, campaign, made)
        except (KeyError, SpecError):
            return
        for finding in lost:
            path = made / finding.key.removeprefix(f"{paths.greens(campaign)}/")
            if path.is_file() and durable.sha256(path) == finding.digest:
                backend.upload(path, finding.key)
                yield finding
