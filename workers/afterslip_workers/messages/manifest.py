"""What an attempt stored: the last file of its folder, and of an accepted result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from afterslip_workers.messages.base import Described, Message, Name, Versioned, read
from afterslip_workers.messages.envelope import Group
from afterslip_workers.messages.stats import Stats


class _Stored(Versioned):
    """What every manifest says.

    Attributes
    ----------
    token : of the attempt that wrote it.
    campaign : for which it was written.
    model_digest : of the model behind the numbers.
    files : SHA-256, hexadecimal, by name below the result's folder.
    """

    token: Name
    campaign: Name
    model_digest: str | None = None
    files: dict[str, str]


class Reuse(Described):
    """By what the sources of a campaign are found again.

    Attributes
    ----------
    model, solver : digests of what changes the numbers of all sources.
    slips, keys : digests by source, in the order in which the spec makes them.
    """

    model: str
    solver: str
    slips: list[str]
    keys: list[str]


class ModelManifest(_Stored):
    """A campaign's model, and the empty store of its Green's functions.

    Attributes
    ----------
    groups : sources of each group, by their places in the store.
    sources : what a user may know of each source.
    from_cache : whether another campaign had the same model.
    reuse : None where no source can serve another campaign.
    n_unknowns, n_elements, n_node, quality, notes : of the mesh.
    """

    kind: Literal["model"]
    n_sources: int
    groups: list[list[int]]
    sources: list[dict[str, Any]] = Field(default_factory=list)
    from_cache: bool = False
    reuse: Reuse | None = None
    n_unknowns: int | None = None
    n_elements: int | None = None
    n_node: int | None = None
    quality: dict[str, Any] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)


class Cover(Described):
    """What one stored source is good for, and where it came from.

    Attributes
    ----------
    origin, origin_position : campaign, and place there, that it was taken from; None
        where it was solved.
    """

    origin: str | None
    origin_position: int | None


class GroupManifest(_Stored):
    """Green's functions of a group; ``kind`` is a word of the stored format.

    Attributes
    ----------
    stats, history : of the solve.
    covers : by place in the store.
    """

    kind: Literal["greens"]
    group: Group
    stats: Stats = Stats()
    history: list[dict[str, Any]] = Field(default_factory=list)
    covers: dict[int, Cover] = Field(default_factory=dict)


class NamedInversion(Message):
    """An inversion's identifier and the user's name for it."""

    id: Name
    name: str | None = None


class InversionManifest(_Stored):
    """Result of an inversion; ``summary`` has its figures for lists."""

    kind: Literal["inversion"]
    inversion: NamedInversion
    summary: dict[str, Any] = Field(default_factory=dict)


Manifest = ModelManifest | GroupManifest | InversionManifest
_FORM: TypeAdapter[Manifest] = TypeAdapter(
    Annotated[Manifest, Field(discriminator="kind")]
)


def read_manifest(content: Mapping[str, Any]) -> Manifest:
    """Read a manifest.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version; class ``internal`` for content
        that is no manifest.
    """
    return read(_FORM, content, "manifest", "release")
