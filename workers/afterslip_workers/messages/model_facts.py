"""What a campaign was built from: ``model.json`` beside its Green's functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field, TypeAdapter

from afterslip_workers.messages.base import Versioned, read


class ModelFacts(Versioned):
    """What groups, inversions and checks of a store read of a campaign's model.

    An engine adds its own, such as the sizes of its arrays.

    Attributes
    ----------
    digest : of the model.
    campaign_digest, greens_digest : of the whole spec, and of what changes numbers.
    n_unknowns, n_elements, n_node, quality, notes : of the mesh.
    n_sources, groups : unit sources, and their places in the store by group.
    covers : what the numbers are good for, as the physics says it.
    crc32c : whether chunks end in a checksum; those of 0.1.0 do not.
    sources : what a user may know of each source.
    table, stations : columns of the sources as the spec makes them, and of stations.
    order : for each place in the store its number in the spec; None: the same.
    files : SHA-256 by name of the arrays that no group writes.
    """

    model_config = ConfigDict(extra="allow")

    digest: str
    campaign_digest: str | None = None
    greens_digest: str | None = None
    n_unknowns: int | None = None
    n_elements: int | None = None
    n_node: int | None = None
    quality: dict[str, Any] | None = None
    notes: list[str] = Field(default_factory=list)
    n_sources: int | None = None
    groups: list[list[int]] = Field(default_factory=list)
    covers: dict[str, Any] | None = None
    crc32c: bool = False
    sources: list[dict[str, Any]] = Field(default_factory=list)
    table: dict[str, list[Any]] | None = None
    stations: dict[str, Any] | None = None
    order: list[int] | None = None
    files: dict[str, str] = Field(default_factory=dict)

    def model_post_init(self, _context: Any) -> None:
        """Leave out what was not said: an engine asks whether there is an order."""
        self.model_fields_set.add("version")


_FORM = TypeAdapter(ModelFacts)


def read_model_facts(content: Mapping[str, Any]) -> ModelFacts:
    """Read ``model.json``; that of 0.1.0 has no version.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version; class ``internal`` for content
        that does not describe a model.
    """
    return read(_FORM, content, "model.json", "release")
