"""Looking over a whole store: every file against the manifest that promised it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from afterslip_workers.modelling.cache import META, find
from afterslip_workers.progress import MANIFEST
from afterslip_workers.store import checkpoint, paths
from afterslip_workers.store.commit import moves_of
from afterslip_workers.store.findings import Expected, Finding, Report
from afterslip_workers.store.place import Place, read_json

_CHUNK = re.compile(r"(?P<array>[a-z_]+)/c/(?P<group>\d+)(/.*)?")
# the arrays that groups write; what others hold was written with the model
_GROUPED = frozenset(
    {"response", "recurrence", "start_norm", "shift", "displacement", "mode_count",
     "residual", "time_error", "iterations"}
)  # fmt: skip
_DESCRIPTION = "zarr.json"
_INVERSION = "inversion-"

Progress = Callable[[str], None]


def check(
    place: Place,
    expected: Expected | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Read every file of a store and compare it with what was promised.

    Parameters
    ----------
    progress : called with the name of what is being looked at.
    """
    report = Report()
    for digest in shown(place.names(paths.MODELS)):
        progress(f"model {digest[:12]}")
        _model(place, digest, report)
    uploads = set(shown(place.names(paths.FILES)))
    if expected is not None:
        uploads |= expected.uploads
    for name in sorted(uploads):
        progress(f"upload {name[:12]}")
        key = paths.file(name)
        _file(place, key, name, Finding("upload", key, digest=name), report)
    campaigns = set(shown(place.names(paths.CAMPAIGNS)))
    if expected is not None:
        campaigns |= set(expected.manifests)
    for campaign in sorted(campaigns):
        progress(f"campaign {campaign}")
        report.campaigns += 1
        _Campaign(place, campaign, expected, report).look()
    report.findings += _attempts(place, expected)
    report.findings += _checkpoints(place)
    return report


def shown(names: list[str]) -> list[str]:
    """Leave out the names of files that are still being written."""
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
            otherwise = Finding("missing", key, *facts, otherwise.inversion)
        report.findings.append(otherwise)
        return False
    report.bytes += size
    if place.sha256(key) != digest:
        report.findings.append(otherwise)
        return False
    report.known.setdefault(digest, key)
    return True


class _Campaign:
    """One look over the files of a campaign."""

    def __init__(
        self, place: Place, name: str, expected: Expected | None, report: Report
    ) -> None:
        self.place = place
        self.name = name
        self.report = report
        self.root = paths.greens(name)
        self.accepted = None if expected is None else expected.manifests.get(name, {})
        self.promised: set[str] = {f"{self.root}/{_DESCRIPTION}"}
        self.groups: set[int] = set()
        self.inversions: set[str] = set()

    def look(self) -> None:
        """Compare every file, and list those that nothing speaks of."""
        facts = read_json(self.place, paths.model_facts(self.name))
        root = read_json(self.place, f"{self.root}/{_DESCRIPTION}")
        if not isinstance(facts, dict) or not isinstance(root, dict):
            self._add("unreadable", paths.campaign(self.name))
            return
        # before the manifests, which are written after what they promise
        there = self.place.keys(self.root)
        for name, digest in facts.get("files", {}).items():
            self._compare(f"{self.root}/{name}", digest)
        for name in self._names():
            self._manifest(name)
        unproven = self._unpromised(there, bool(facts.get("files")))
        for group in sorted(unproven - self.groups):
            # it may have been accepted since the look at the manifests
            if not self._manifest(str(group)):
                self._unverified(self.root, group=group)
        for inversion in shown(self.place.names(f"{self._folder}/inversions")):
            if inversion not in self.inversions:
                self._unverified(paths.inversion(self.name, inversion), inversion)
        status = (root.get("attributes") or {}).get("status")
        if status == "complete" and not self.accepted:
            for group in set(range(len(facts.get("groups", [])))) - self.groups:
                if group not in unproven:
                    key = f"{self.root}/mode_count/c/{group}"
                    self._add("missing", key, group=group)

    @property
    def _folder(self) -> str:
        return paths.campaign(self.name)

    def _add(self, kind: str, key: str, **facts: Any) -> None:
        self.report.findings.append(Finding(kind, key, self.name, **facts))

    def _compare(self, key: str, digest: str, **facts: Any) -> None:
        self.promised.add(key)
        damage = Finding("damaged", key, self.name, digest=digest, **facts)
        _file(self.place, key, digest, damage, self.report)

    def _names(self) -> list[str]:
        """Return the names of what was accepted; the database's word counts."""
        stored = shown(self.place.names(f"{self._folder}/manifests"))
        names = {name.removesuffix(".json") for name in stored} - {"model"}
        return sorted(names | set(self.accepted or ()), key=lambda n: (len(n), n))

    def _manifest(self, name: str) -> bool:
        """Compare what one manifest promises; False if there is none."""
        key = paths.accepted_manifest(self.name, name)
        stored = read_json(self.place, key)
        manifest = (self.accepted or {}).get(name, stored)
        if not isinstance(manifest, dict):
            return False
        facts: dict[str, Any] = {}
        if name.isdecimal():
            facts["group"] = int(name)
            self.groups.add(int(name))
            self.report.groups += 1
        else:
            facts["inversion"] = name.removeprefix(_INVERSION)
            self.inversions.add(facts["inversion"])
        if stored != manifest:
            self._add("manifest", key, **facts)
        for _, file, digest in moves_of(self.name, manifest):
            self._compare(file, digest, **facts)
        return True

    def _unpromised(self, there: list[str], complete: bool) -> set[int]:
        """List files that no manifest speaks of; return their groups."""
        groups = set()
        for key in there:
            if key in self.promised:
                continue
            chunk = _CHUNK.fullmatch(key.removeprefix(f"{self.root}/"))
            if chunk and chunk["array"] in _GROUPED:
                groups.add(int(chunk["group"]))
            elif complete and not key.endswith(_DESCRIPTION):
                self._add("extra", key)
        return groups

    def _unverified(
        self, key: str, inversion: str | None = None, group: int | None = None
    ) -> None:
        """Say of files that nothing says what they should hold."""
        facts = {"group": group, "inversion": inversion}
        if self.accepted is None:
            self.report.unverified += 1
            self._add("unproven", key, **facts)
        else:
            self._add("unaccepted", key, **facts)


def _attempts(place: Place, expected: Expected | None) -> Iterator[Finding]:
    """Find attempts that nobody waits for; without a database all may be wanted."""
    for token in shown(place.names(paths.ATTEMPTS)):
        key = paths.attempt(token)
        if expected is None or token in expected.attempts:
            continue
        stored = place.size(f"{key}/{MANIFEST}") is not None
        known = token in expected.settled
        yield Finding("waiting" if stored and not known else "orphan", key)


def _checkpoints(place: Place) -> Iterator[Finding]:
    for name in shown(place.names(paths.CHECKPOINTS)):
        folder = paths.checkpoint(name)
        known = read_json(place, f"{folder}/{checkpoint.LATEST}") or {}
        key = f"{folder}/{known.get('file')}"
        if place.size(key) is None or place.sha256(key) != known.get("sha256"):
            yield Finding("checkpoint", folder)
