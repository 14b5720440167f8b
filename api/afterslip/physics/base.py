"""The client's half of a physics; the worker's half is its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from afterslip.schemas.campaign import Campaign
    from afterslip.spec.inputs import Inputs

# what stored numbers are good for, by the physics' own names; JSON
Quality = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Work:
    """How much a campaign asks for.

    Attributes
    ----------
    sources : unit sources.
    elements : about how many elements or cells its mesh has at least, by their
        cause; a cause ends a sentence that says what to make coarser. Empty where
        the files of the spec were not given.
    """

    sources: int
    elements: Mapping[str, float] = field(default_factory=dict)


class Physics(Protocol):
    """A kind of Green's functions, found by the entry point ``afterslip.physics``.

    Attributes
    ----------
    name : of the entry point and of the spec's ``physics``.
    numerics : raised when a change makes Green's functions differ by more than their
        tolerance: what an earlier release stored is then no longer taken.
    group_size : unit sources that are solved, stored and tried again together.
    spec : the campaign's schema.
    parts : for each part of a source's key (``model``, ``slip``, ``solver``) the keys
        of the spec that it is made of.
    """

    name: str
    numerics: int
    group_size: int
    spec: type[Campaign]
    parts: Mapping[str, tuple[str, ...]]

    def quality(self, spec: Any) -> Quality:
        """Return what a campaign's numbers will be good for."""

    def worse(self, stored: Quality, wanted: Quality) -> list[str]:
        """Return the keys of the spec in which stored numbers are not good enough."""

    def serves(self, stored: Quality, wanted: Quality) -> bool:
        """Tell whether stored numbers of the same key are as good as those wanted."""

    def numbers(self, spec: Any) -> dict[str, Any]:
        """Return what changes the numbers, beside model and sources, as plain data."""

    def work(
        self, spec: Any, inputs: Inputs | None = None, mesh_bytes: int | None = None
    ) -> Work:
        """Return how much a campaign asks for.

        Parameters
        ----------
        inputs : the files of the spec, where they are read already.
        mesh_bytes : size of the mesh's file, where the mesh is imported.
        """
