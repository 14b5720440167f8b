"""Looking over a whole store: every file against the manifest that promised it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from afterslip import integrity
from afterslip.errors import ArchiveError
from afterslip_workers.messages import Manifest, TaskError, read_manifest
from afterslip_workers.store import checkpoint, paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.commit import facts_of, moves_of
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.findings import Expected, Finding, Report
from afterslip_workers.store.models import META, file_of, find
from afterslip_workers.store.paths import MANIFEST

_DESCRIPTION = "zarr.json"
_INVERSION = "inversion-"

Progress = Callable[[str], None]


def recorded(backend: StoreBackend, key: str) -> Manifest | None:
    """Return a manifest that a campaign recorded; None if none can be read there."""
    found = read_json(backend, key)
    try:
        return read_manifest(found) if isinstance(found, dict) else None
    except TaskError:
        return None


def check(
    backend: StoreBackend,
    expected: Expected | None = None,
    progress: Progress = lambda _: None,
) -> Report:
    """Read every file of a store and compare it with what was promised.

    Parameters
    ----------
    progress : called with the name of what is being looked at.
    """
    report = Report()
    for digest in shown(backend.names(paths.MODELS)):
        progress(f"model {digest[:12]}")
        _model(backend, digest, report)
    uploads = set(shown(backend.names(paths.FILES)))
    if expected is not None:
        uploads |= expected.uploads
    for name in sorted(uploads):
        progress(f"upload {name[:12]}")
        key = paths.file(name)
        _file(backend, key, name, Finding("upload", key, digest=name), report)
    campaigns = set(shown(backend.names(paths.CAMPAIGNS)))
    if expected is not None:
        campaigns = (campaigns | set(expected.manifests)) - expected.deleted
    for campaign in sorted(campaigns):
        progress(f"campaign {campaign}")
        check_campaign(backend, campaign, expected, report)
    report.findings += _attempts(backend, expected)
    report.findings += _checkpoints(backend)
    return report


def shown(names: list[str]) -> list[str]:
    """Leave out the names of files that are still being written."""
    return [name for name in names if not name.startswith(".")]


def _model(backend: StoreBackend, digest: str, report: Report) -> None:
    report.models += 1
    if find(backend, digest) is None:
        report.findings.append(Finding("model", paths.model(digest)))
        return
    meta = read_json(backend, f"{paths.model(digest)}/{META}")
    key = file_of(digest, meta) if meta else ""
    report.files += 1
    report.bytes += backend.size(key) or 0


def _file(
    backend: StoreBackend, key: str, digest: str, otherwise: Finding, report: Report
) -> bool:
    """Compare one file; tell whether it is whole."""
    size = backend.size(key)
    report.files += 1
    if size is None:
        if otherwise.kind == "damaged":
            facts = otherwise.campaign, otherwise.group, otherwise.digest
            otherwise = Finding("missing", key, *facts, otherwise.inversion)
        report.findings.append(otherwise)
        return False
    report.bytes += size
    if backend.sha256(key) != digest:
        report.findings.append(otherwise)
        return False
    report.known.setdefault(digest, key)
    return True


def check_campaign(
    backend: StoreBackend, campaign: str, expected: Expected | None, report: Report
) -> dict[int, dict[str, str]]:
    """Compare the files of one campaign.

    Returns
    -------
    The SHA-256 by key below the store that each group was compared with.
    """
    report.campaigns += 1
    look = _Campaign(backend, campaign, expected, report)
    look.look()
    return look.groups


class _Campaign:
    """One look over the files of a campaign."""

    def __init__(
        self,
        backend: StoreBackend,
        name: str,
        expected: Expected | None,
        report: Report,
    ) -> None:
        self.backend = backend
        self.name = name
        self.report = report
        self.root = paths.greens(name)
        self.accepted = None if expected is None else expected.manifests.get(name, {})
        self.promised: set[str] = {f"{self.root}/{_DESCRIPTION}"}
        self.sealed = False
        self.status = ""
        self.grouped: frozenset[str] = frozenset()
        self.groups: dict[int, dict[str, str]] = {}
        self.inversions: set[str] = set()

    def look(self) -> None:
        """Compare every file, and list those that nothing speaks of."""
        facts = self._facts()
        if facts is None or not self._read_root():
            self._add("unreadable", paths.campaign(self.name))
            return
        # before the manifests, which are written after what they promise
        there = self.backend.keys(self.root)
        fixed = facts.get("files", {})
        if self.sealed and (known := self._document(None)) != fixed:
            if known is None:
                self._add("checksums", f"{self.root}/{integrity.FIXED}")
            else:
                self._add("manifest", paths.model_facts(self.name))
                fixed = known
        for name, digest in fixed.items():
            self._compare(f"{self.root}/{name}", digest)
        for name in self._names(there):
            self._accepted(name)
        left = self._unpromised(there, bool(fixed))
        for group in sorted(left - set(self.groups)):
            # it may have been accepted since the look at the manifests
            if not self._accepted(str(group)):
                self._unverified(self.root, group=group)
        for inversion in shown(self.backend.names(f"{self._folder}/inversions")):
            if inversion not in self.inversions:
                self._unverified(paths.inversion(self.name, inversion), inversion)
        if self.status == "complete" and not self.accepted:
            promised = set(range(len(facts.get("groups", []))))
            for group in sorted(promised - set(self.groups) - left):
                key = f"{self.root}/{min(self.grouped, default='')}/c/{group}"
                self._add("missing", key, group=group)

    def _read_root(self) -> bool:
        """Read what the store says of itself; False if it says nothing sensible."""
        content = self.backend.read(f"{self.root}/{integrity.ROOT}")
        try:
            found = integrity.read_root(content or b"")
        except (ValueError, ArchiveError):
            return False
        self.sealed, self.status = found.sealed, found.status
        self.grouped = found.grouped
        return not found.sealed or found.store == self.name

    def _document(self, group: int | None) -> dict[str, str] | None:
        """Return the checksums of a group, or of what no group writes."""
        name = integrity.FIXED if group is None else integrity.group_key(group)
        content = self.backend.read(f"{self.root}/{name}")
        try:
            return integrity.read_checksums(content or b"", self.name, group)
        except ValueError:
            return None

    @property
    def _folder(self) -> str:
        return paths.campaign(self.name)

    def _facts(self) -> dict[str, Any] | None:
        try:
            return facts_of(self.backend, self.name)
        except StoreError:
            return None

    def _add(self, kind: str, key: str, **facts: Any) -> None:
        self.report.findings.append(Finding(kind, key, self.name, **facts))

    def _compare(self, key: str, digest: str, **facts: Any) -> None:
        self.promised.add(key)
        damage = Finding("damaged", key, self.name, digest=digest, **facts)
        _file(self.backend, key, digest, damage, self.report)

    def _names(self, there: list[str]) -> list[str]:
        """Return the names of what was accepted; the database's word counts."""
        stored = shown(self.backend.names(f"{self._folder}/manifests"))
        names = {name.removesuffix(".json") for name in stored} - {"model"}
        keys = (key.removeprefix(f"{self.root}/") for key in there)
        groups = {integrity.group_of_document(key) for key in keys} - {None}
        names |= {str(group) for group in groups} | set(self.accepted or ())
        return sorted(names, key=lambda name: (len(name), name))

    def _accepted(self, name: str) -> bool:
        """Compare what was promised of a group or inversion; False if nothing was.

        The database's manifest counts, then the checksums, which check themselves and
        are written before the store's own manifest.
        """
        key = paths.accepted_manifest(self.name, name)
        group = int(name) if name.isdecimal() else None
        inversion = None if group is not None else name.removeprefix(_INVERSION)
        facts = {"group": group, "inversion": inversion}
        stored = recorded(self.backend, key)
        manifest = (self.accepted or {}).get(name, stored)
        files = self._files(manifest)
        known = None if group is None else self._document(group)
        known_better = known is not None and name not in (self.accepted or {})
        promised = known if known_better else files
        if promised is None:
            return False
        if group is not None:
            self.groups[group] = promised
            self.report.groups += 1
        else:
            self.inversions.add(str(inversion))
        wanted = self.accepted is None or name in self.accepted
        if wanted and (stored != manifest or files != promised):
            self._add("manifest", key, **facts)
        if self.sealed and group is not None and known != promised:
            document = f"{self.root}/{integrity.group_key(group)}"
            self._add("checksums", document, group=group)
        below = f"{self.root}/" if group is not None else ""
        for file, digest in promised.items():
            self._compare(f"{below}{file}", digest, **facts)
        return True

    def _files(self, manifest: Manifest | None) -> dict[str, str] | None:
        """Return what a manifest promises, by key; of a group below its store."""
        if manifest is None:
            return None
        try:
            moves = moves_of(self.name, manifest)
        except StoreError:
            return None
        return {key.removeprefix(f"{self.root}/"): digest for _, key, digest in moves}

    def _unpromised(self, there: list[str], complete: bool) -> set[int]:
        """List files that nothing promised; return the groups that wrote some."""
        groups = set()
        for key in there:
            if key in self.promised or key.endswith(_DESCRIPTION):
                continue
            group = integrity.group_of(key.removeprefix(f"{self.root}/"), self.grouped)
            if group is not None and group not in self.groups:
                groups.add(group)
            elif complete or group is not None:
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


def _attempts(backend: StoreBackend, expected: Expected | None) -> Iterator[Finding]:
    """Find attempts that nobody waits for; without a database all may be wanted."""
    for token in shown(backend.names(paths.ATTEMPTS)):
        key = paths.attempt(token)
        if expected is None or token in expected.attempts:
            continue
        stored = backend.size(f"{key}/{MANIFEST}") is not None
        known = token in expected.settled
        yield Finding("waiting" if stored and not known else "orphan", key)


def _checkpoints(backend: StoreBackend) -> Iterator[Finding]:
    for name in shown(backend.names(paths.CHECKPOINTS)):
        folder = paths.checkpoint(name)
        known = read_json(backend, f"{folder}/{checkpoint.LATEST}") or {}
        key = f"{folder}/{known.get('file')}"
        if backend.size(key) is None or backend.sha256(key) != known.get("sha256"):
            yield Finding("checkpoint", folder)
