"""Repair of what a look over a store has found, as far as the store can do it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from afterslip import integrity
from afterslip.errors import SpecError
from afterslip_workers.store import commit, durable, paths
from afterslip_workers.store.commit import moves_of
from afterslip_workers.store.findings import Expected, Finding, Report
from afterslip_workers.store.place import Place, read_json


def repair(
    place: Place, report: Report, expected: Expected | None = None
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
        elif finding.kind == "manifest" and expected is not None:
            if _recorded(place, finding, expected):
                done[finding.key] = "written from the database"
        elif finding.kind == "checksums":
            if _summed(place, finding, expected):
                done[finding.key] = "written from the manifest"
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


def _recorded(place: Place, finding: Finding, expected: Expected) -> bool:
    """Write a manifest that the database has."""
    manifests = expected.manifests.get(str(finding.campaign), {})
    manifest = manifests.get(finding.accepted_as or "")
    if manifest is None:
        return False
    place.write(finding.key, json.dumps(manifest, sort_keys=True).encode())
    return True


def _summed(place: Place, finding: Finding, expected: Expected | None) -> bool:
    """Write checksums anew from the manifest, or from the campaign's description."""
    campaign = str(finding.campaign)
    if finding.group is None:
        files = (read_json(place, paths.model_facts(campaign)) or {}).get("files")
        if files:
            place.write(finding.key, integrity.write_checksums(campaign, files))
        return bool(files)
    name = str(finding.group)
    manifest = read_json(place, paths.accepted_manifest(campaign, name))
    if expected is not None and campaign in expected.manifests:
        manifest = expected.manifests[campaign].get(name)
    if not isinstance(manifest, dict):
        return False
    commit.write_checksums(place, campaign, manifest, moves_of(campaign, manifest))
    return True


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
