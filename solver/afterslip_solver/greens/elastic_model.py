"""The elastic part of a model on one device: what every physics on its mesh shares."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.array_cache import ArrayCache, Arrays, CacheScope
from afterslip_solver.backend import Backend
from afterslip_solver.backend.base import Tets
from afterslip_solver.greens.source import Loads, Slip, padded
from afterslip_solver.model import Float, Int, Model
from afterslip_solver.multigrid import Cycle, Preconditioner, make_preconditioner
from afterslip_solver.operators import Elasticity, Space, Springs, along_curve


@dataclass(frozen=True, slots=True)
class Solvable:
    """A stiffness matrix and its preconditioner."""

    operator: Elasticity
    cycle: Preconditioner

    @property
    def bytes(self) -> int:
        """Memory on the backend."""
        return self.operator.bytes + self.cycle.bytes


class ElasticModel:
    """Numbering, stiffness, preconditioner and loads of a model.

    Parameters
    ----------
    model : that `check_model` has passed, or will have by the time of ``checked``.
    backend : where vectors live.
    preconditioner : "multigrid" or "three_level".
    cache : where the set-up's arrays are stored from one process to the next.
    checked : waits for `check_model` and raises what it found, where that runs beside
        the numbering.

    Attributes
    ----------
    model, backend : as given. space : the solver's numbering.
    tets : all elements on the backend.
    lam, mu : (n_elem,) Pa, in the solver's order, on the host.
    springs : of the restoring force, or None.
    system : K and its preconditioner.
    loads : of slip on the model's faults.
    """

    # a part of a model that several devices share has its own kind of these
    _springs_kind: type[Springs] = Springs

    def __init__(
        self,
        model: Model,
        backend: Backend,
        preconditioner: str = "multigrid",
        cache: ArrayCache | None = None,
        checked: Callable[[], None] = lambda: None,
    ) -> None:
        self.model = model
        self.backend = backend
        self._kind = preconditioner
        try:
            self.space = space = self._numbered(CacheScope(cache))
        finally:
            # what is wrong with a model says more than what fails because of it
            checked()
        order = space.element_order
        self.lam, self.mu = model.materials.lam[order], model.materials.mu[order]
        self.tets = Tets(
            backend.asarray(space.elements),
            backend.asarray(space.gradients),
            backend.asarray(space.volume),
        )
        self.springs: Springs | None = None
        if model.restoring is not None:
            self.springs = self._springs_kind(backend, space, model.restoring)
        self._soft: tuple[Float, Solvable] | None = None
        self.system = self._system(self.mu)
        self.loads = Loads(backend, space, self.tets, model.splits)

    @property
    def bytes(self) -> int:
        """Memory on the backend; softened matrices are their users'."""
        springs = 0 if self.springs is None else self.springs.bytes
        return self.system.bytes + self.tets.bytes + springs

    def load(self, slip: Slip) -> Any:
        """Right-hand side (n_node, 3, lane) of slip, see `padded`; N."""
        offsets = self.loads.offsets(padded(self.model, slip)[0])
        return self.loads.force(self.system.operator, offsets)

    def softened(self, which: Int, values: Float) -> Solvable:
        """K^v with other shear moduli and the same bulk modulus; the last is stored.

        Parameters
        ----------
        which : (n,) the solver's numbers of elements. values : (n,) Pa, theirs.
        """
        if self._soft is None or not np.array_equal(self._soft[0], values):
            mu = self.mu.copy()
            mu[which] = values
            self._soft = None
            self._soft = values, self._system(mu)
        return self._soft[1]

    def twin(self) -> ElasticModel | None:
        """Return the same with work vectors of its own; None: not of this kind."""
        systems = [self.system] if self._soft is None else [self.system, self._soft[1]]
        twins = list[Solvable]()
        for system in systems:
            if not isinstance(system.cycle, Cycle):
                return None
            twins.append(Solvable(system.operator, system.cycle.twin()))
        other = copy(self)
        other.system = twins[0]
        if self._soft is not None:
            other._soft = self._soft[0], twins[1]  # noqa: SLF001
        return other

    def _numbered(self, cache: CacheScope) -> Space:
        """Give the mesh the numbering that suits the backend."""
        mesh, force = self.model.mesh, self.model.restoring
        cache = cache.keyed(self.backend.name, mesh.nodes, mesh.elements)

        def orders() -> Arrays:
            found = self.backend.numbering(mesh.nodes, mesh.elements)
            nodes, elements = found or along_curve(mesh.nodes, mesh.elements)
            return {"nodes": nodes, "elements": elements}

        numbering = cache.get("numbering", orders)
        springs = () if force is None else (force.faces, force.stiffness, force.owners)
        if force is not None and force.up is not None:
            springs = (*springs, force.up)
        return Space.build(
            mesh,
            self.model.fixed,
            (numbering["nodes"], numbering["elements"]),
            cache.keyed(self.model.fixed, *springs),
        )

    def places(self, nodes: NDArray[np.integer]) -> Int:
        """Positions of mesh nodes in vectors, -1 where another device owns them."""
        found: Int = self.space.rank[nodes]
        return found

    def fault_nodes(self, name: str) -> Int:
        """Return the mesh nodes on a fault, of those that this device has."""
        return self.model.faults[name].nodes

    def agree(self, u: Any) -> None:
        """Give a nodal vector one value at nodes that several devices have."""

    def preconditioner(self, operator: Elasticity) -> Preconditioner:
        """Set up the preconditioner of a stiffness of this model."""
        return make_preconditioner(self._kind, operator)

    def _system(self, mu: Float) -> Solvable:
        """Operator with shear modulus mu and the model's bulk modulus."""
        lam = self.lam + 2.0 / 3.0 * (self.mu - mu)
        operator = Elasticity(
            self.backend, self.space, self.tets, lam, mu, self.springs
        )
        return Solvable(operator, self.preconditioner(operator))
