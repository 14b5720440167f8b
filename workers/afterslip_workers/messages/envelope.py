"""What the service hands to a worker: one attempt at one piece of work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from afterslip.physics.registry import DEFAULT
from afterslip_workers.messages.base import Described, Message, Name, Versioned, read

_RENAMED = {"strict": "escalation"}  # since version 1


class Origin(Described):
    """Where another campaign has stored a source.

    Attributes
    ----------
    campaign, position : whose, and its place in that store.
    group : of that campaign, in which it lies.
    files : SHA-256 by name of that group's files.
    """

    campaign: Name
    position: int
    group: int
    files: dict[str, str] | None = None


class Group(Message):
    """A group of unit sources.

    Attributes
    ----------
    index : number of the group in its campaign.
    sources : places of its sources in the store.
    taken : by place, where some of them are stored already.
    """

    index: int
    sources: list[int]
    taken: dict[int, Origin] = Field(default_factory=dict)


class Envelope(Versioned):
    """One attempt at one piece of work.

    Attributes
    ----------
    token : names the attempt and its folder.
    kind : what is to be done.
    campaign : the campaign's identifier, a folder name.
    physics : name of what is computed, which says who computes it.
    spec : canonical campaign, files given by digest.
    store : root folder of the store, which every worker has under this path, or
        ``s3://bucket/prefix``.
    files_base : folder against which relative file references are read, or None.
    group : for kind "group".
    inversion : {"id", "name", "datasets", ...}, for kind "inversion"; the worker
        validates it as a user's request.
    backend : "auto", "cpu" or "gpu".
    escalation : times that the group did not converge before, see
        :func:`afterslip_workers.engines.viscoelastic.settings.stricter`.
    avoid : names of workers on which the work failed for want of memory or a device;
        the placement gives it to another one as long as there is one.
    timeout_s : longest time allowed, s; None for ever.
    max_elements : that a mesh may have which is chosen for an accuracy; None: any.
    trace : context of OpenTelemetry, of what the attempt is a part; None: untraced.
    """

    token: Name
    kind: Literal["model", "group", "inversion"]
    campaign: Name
    physics: str
    spec: dict[str, Any]
    store: str
    files_base: str | None = None
    group: Group | None = None
    inversion: dict[str, Any] | None = None
    backend: str = "auto"
    escalation: int = 0
    avoid: list[str] = Field(default_factory=list)
    timeout_s: float | None = None
    max_elements: int | None = None
    trace: dict[str, str] | None = None

    @property
    def sources(self) -> list[int]:
        """Places of the sources of the group."""
        return self.group.sources if self.group else []

    @property
    def taken(self) -> dict[int, Origin]:
        """Where some sources of the group are stored already."""
        return self.group.taken if self.group else {}

    @model_validator(mode="after")
    def _described(self) -> Self:
        if self.kind == "group" and self.group is None:
            raise ValueError("the envelope of a group names no group")
        if self.kind == "inversion" and not self.inversion:
            raise ValueError("the envelope of an inversion describes none")
        return self


_FORM = TypeAdapter(Envelope)


def read_envelope(content: Mapping[str, Any]) -> Envelope:
    """Read an envelope.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version; class ``internal`` for an
        unknown kind, or a field that is missing, unknown or of another type.
    """
    found = {_RENAMED.get(name, name): value for name, value in content.items()}
    if found.get("version") == 1:
        # release 0.1.0 had one physics, and did not name it
        found.setdefault("physics", DEFAULT)
    if found.get("kind") == "greens":
        found["kind"] = "group"
    return read(_FORM, found, "envelope", "worker")
