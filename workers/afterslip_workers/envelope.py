"""What the service hands to a worker, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from afterslip.error_class import ErrorClass
from afterslip.physics.registry import DEFAULT
from afterslip_workers.errors import TaskError
from afterslip_workers.store import paths, spool
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.open import open_store

VERSION = 2
KINDS = ("model", "group", "inversion")
# what a service of 0.1.0 wrote: read until 0.3, so that its attempts go on
_FIRST = 1
_RENAMED = {"strict": "escalation"}
_QUALITY = ("until", "tolerance", "time_tolerance")


@dataclass(frozen=True, slots=True)
class Envelope:
    """One attempt at one piece of work; every field can be written as JSON.

    Attributes
    ----------
    token : names the attempt and its folder.
    kind : "model", "group" or "inversion".
    campaign : the campaign's identifier, a folder name.
    physics : name of what is computed, which says who computes it.
    spec : canonical campaign, files given by digest.
    store : root folder of the store, which every worker has under this path, or
        ``s3://bucket/prefix``.
    files_base : folder against which relative file references are read, or None.
    group : {"index", "sources", "taken"}: the group's number and its unit sources,
        in the order of the store, and where some of them are stored already, see
        :func:`afterslip_workers.engines.viscoelastic.reuse.take`.
    inversion : {"id", "name", "datasets", ...}, for kind "inversion".
    backend : "auto", "cpu" or "gpu".
    escalation : times that the group did not converge before, see
        :func:`afterslip_workers.engines.viscoelastic.settings.stricter`.
    avoid : names of workers on which the work failed for want of memory or a device;
        the placement gives it to another one as long as there is one.
    timeout_s : longest time allowed, s; None for ever.
    trace : context of OpenTelemetry, of what the attempt is a part; None: untraced.
    version : of this envelope.
    """

    token: str
    kind: str
    campaign: str
    spec: dict[str, Any]
    store: str
    physics: str = DEFAULT
    files_base: str | None = None
    group: dict[str, Any] | None = None
    inversion: dict[str, Any] | None = None
    backend: str = "auto"
    escalation: int = 0
    avoid: Sequence[str] = ()
    timeout_s: float | None = None
    trace: dict[str, str] | None = None
    version: int = VERSION

    @property
    def store_backend(self) -> StoreBackend:
        """The store."""
        return open_store(self.store)

    @property
    def folder(self) -> Path:
        """Folder on this machine in which the attempt works."""
        return spool.work_folder(self.store_backend, self.token)

    def as_json(self) -> dict[str, Any]:
        """Return the envelope as plain values."""
        return asdict(self)


def parse(content: Mapping[str, Any]) -> Envelope:
    """Read an envelope.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version; class ``internal`` for an
        unknown kind or a missing field.
    """
    version = content.get("version")
    if version == _FIRST:
        content = _of_first(content)
    elif version != VERSION:
        raise TaskError(
            ErrorClass.OTHER_RELEASE,
            f"the envelope has version {version!r}, this worker reads {_FIRST} and "
            f"{VERSION}: install the same release of afterslip in the service and its "
            "workers",
        )
    known = {item.name for item in fields(Envelope)}
    unknown = sorted(set(content) - known)
    missing = sorted({"token", "kind", "campaign", "spec", "store"} - set(content))
    if unknown or missing:
        raise TaskError(
            ErrorClass.INTERNAL,
            f"the envelope has unknown fields {unknown}, lacks {missing}",
        )
    envelope = Envelope(**content)
    if envelope.kind not in KINDS:
        raise TaskError(
            ErrorClass.INTERNAL,
            f"the envelope's kind {envelope.kind!r} is none of {KINDS}",
        )
    if envelope.kind == "group" and not envelope.group:
        raise TaskError(ErrorClass.INTERNAL, "the envelope of a group names no group")
    if envelope.kind == "inversion" and not envelope.inversion:
        raise TaskError(
            ErrorClass.INTERNAL, "the envelope of an inversion describes none"
        )
    try:
        paths.checked(envelope.token)
        paths.checked(envelope.campaign)
    except ValueError as error:
        raise TaskError(ErrorClass.INTERNAL, str(error)) from error
    return envelope


def _of_first(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an envelope of version 1 as one of this version."""
    found = {_RENAMED.get(name, name): value for name, value in content.items()}
    if found.get("kind") == "greens":
        found["kind"] = "group"
    group = found.get("group")
    if group and "taken" in group:
        taken = {place: _origin(o) for place, o in group["taken"].items()}
        found["group"] = {**group, "taken": taken}
    return {**found, "version": VERSION}


def _origin(content: Mapping[str, Any]) -> dict[str, Any]:
    """Put what a stored source is good for, which version 1 names one by one, apart."""
    origin = dict(content)
    quality = {name: origin.pop(name) for name in _QUALITY if name in origin}
    return {**origin, "quality": quality}


@dataclass(slots=True)
class Receipt:
    """Small answer of an attempt; the numbers stay in the store.

    Attributes
    ----------
    outcome : "stored", "failed" or "cancelled".
    manifest : what was stored, with checksums; None unless stored.
    error : {"class", "message"}; None unless failed.
    stats : {"solves", "iterations", "seconds", "residual", "time_error",
        "worker", "device"}.
    """

    token: str
    outcome: str
    manifest: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    stats: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the receipt as plain values."""
        return asdict(self)


def failed(
    token: str, error: TaskError, stats: dict[str, Any] | None = None
) -> Receipt:
    """Receipt of an attempt that failed."""
    return Receipt(
        token=token,
        outcome="failed",
        error={"class": error.error_class.value, "message": error.message},
        stats=stats or {},
    )
