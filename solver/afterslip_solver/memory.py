"""How much memory a model's groups need, known before anything is allocated.

Counts follow the data structures: numbers of nodes, elements and of the stiffness
matrix' blocks, times what the backend stores of each. In a mesh of T tetrahedra and N
nodes of second order, V vertices, E edges and F faces, two nodes couple if they share
an element: 3 pairs lie on an edge, 6 more in a face, 3 more in a tetrahedron. Euler's
V - E + F - T = 1 and F = 2 T (up to the boundary) leave 4 N + 33 T blocks for quadratic
and 1.5 N + 0.5 T blocks for linear elements.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf

from afterslip_solver.backend import LANES
from afterslip_solver.greens.accuracy import narrow_basis
from afterslip_solver.greens.time_plan import Scheme

# one vector of displacements, FP64; the preconditioner's are half as large
_NODE = 8 * 3 * LANES
# deviatoric strain at the vertices of an element, FP64
_STATE = 8 * 4 * 5 * LANES
# boundary faces and padding of tables cost this much more than the counts say
_MARGIN = 1.12
# vectors alive in a solve: load, solution, residual, direction, two images, a check
_SOLVE = 7
# vectors of a stepping run: sum, remainder, what a predictor stores and works with
_MARCH = {"none": 4, "adams_bashforth": 7, "galerkin": 24, "dmd": 40}
# four steps of one source are the lanes, and its past ones are vectors of one lane
_MARCH["four_steps"] = 7
# a mesh with edges twice as long has so many times fewer elements
_COARSER = 8.0
# of each fine node: a guess in FP64 and FP32, and its weights of coarse nodes
_NESTED = 204
# what iterations in FP32 hold between solves, in vectors of FP64
_ITERATION = 1.5


class MemoryShortageError(MemoryError):
    """The memory that is free does not do; the message says what would help."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes by part, on the device that solves.

    Attributes
    ----------
    mesh : numbering, elements, gradients.
    operator : the stiffness, also softened where the scheme needs that.
    hierarchy : preconditioners with their work vectors.
    vectors : of the linear solver, and a predictor's past increments.
    creep : states of the viscoelastic elements: the basis or the stress, and work.
    setup : what the set-up needs beside mesh, operator and hierarchy at its peak.
    coarse : the coarser model that the error of the mesh is estimated with: what stays
        while the fine one is solved, and its solutions.
    """

    mesh: int
    operator: int
    hierarchy: int
    vectors: int
    creep: int
    setup: int
    coarse: int = 0

    @property
    def needed(self) -> int:
        """Largest number of bytes in use at any time."""
        constant = self.mesh + self.operator + self.hierarchy + self.coarse
        return constant + max(self.vectors + self.creep, self.setup)

    @property
    def beside(self) -> int:
        """Bytes that two groups at a time take, where the model is there already."""
        own = 2 * (self.vectors + self.creep)
        # work vectors of the second, and what the coarse model solves meanwhile
        return own + self.hierarchy + self.coarse

    @property
    def parts(self) -> dict[str, int]:
        """The parts by name."""
        return asdict(self)


def estimate(
    unknowns: int,
    elements: int,
    viscoelastic: int,
    modes: int,
    backend: str,
    scheme: Scheme = "polynomial",
    further_rows: int = 0,
    time_tolerance: float = 1e-6,
    predictor: str = "galerkin",
    span: float = inf,
    *,
    compared: bool = False,
) -> Estimate:
    """Memory of one model on one device while it solves groups of four lanes.

    Parameters
    ----------
    unknowns : displacement components, three a node.
    elements, viscoelastic : number of elements, and of those that creep.
    modes : Lanczos modes beside the elastic one; of no account for stepping.
    backend : "gpu" (its memory; the host holds the mesh besides) or "cpu".
    scheme : as `Prepared.scheme` says it.
    further_rows : of a state, for branches of the rheology beside the first.
    time_tolerance : of the curve.
    span : its length in shortest relaxation times; both decide how a basis is stored,
        in FP64 where the span is not known.
    predictor : of stepping.
    compared : whether the error of the mesh is estimated with a coarser one.
    """
    n, t = unknowns / 3.0, float(elements)
    systems = 1 if scheme in ("elastic", "polynomial") else 2
    linear = 1.5 * n + 0.5 * t
    states = viscoelastic + further_rows
    if backend == "gpu":
        # the elements of each node, for sums without atomics, come with the creep
        mesh = 144.0 * t + 200.0 * viscoelastic + 4.0 * n
        tables = (24.0 + 36.0 + 72.0) * t + 8.0 * n
        operator = tables + systems * (24.0 * t + 16.0 * t + 24.0 * n)
        hierarchy = systems * (_smoothing(n) + 40.0 * linear + 130.0 * (n - t) / 2)
        setup = 0.0
        held = _ITERATION * _NODE * n
    else:
        mesh = 335.0 * t + 160.0 * n + 152.0 * viscoelastic
        operator = systems * (104.0 * t + 56.0 * n)
        hierarchy = systems * (44.0 * t + _smoothing(n) + 200.0 * linear)
        setup = 240.0 * linear
        held = 0.0
    vectors = float(_NODE) * n * _SOLVE + (systems - 1) * held
    creep = 0.0
    if scheme == "stepping":
        vectors += _NODE * n * _MARCH[predictor]
        # a pool of a device's memory has room that no further array fits into
        work = 1.0 if backend == "gpu" else 0.0
        creep = ((2.0 if further_rows == 0 else 4.0) + work) * _STATE * states
    elif scheme != "elastic":
        one = 0.5 if narrow_basis(time_tolerance, span) else 1.0
        creep = _STATE * states * (one * (modes + 1) + _work(backend, further_rows))
    coarse = 0.0
    if compared:
        solutions = 0.5 * _NODE * n * (modes + 1)
        coarse = (mesh + operator + hierarchy + held + solutions) / _COARSER
        coarse += _NESTED * n
    parts = (mesh, operator, hierarchy, vectors, creep, setup, coarse)
    return Estimate(*(int(_MARGIN * part) for part in parts))


def _work(backend: str, further_rows: int) -> float:
    """States beside the basis: the next direction's, and what a pool cannot reuse."""
    if backend != "gpu":
        return 2.0
    return 2.5 if further_rows == 0 else 4.5


def _smoothing(n: float) -> float:
    """Inverse diagonal, five FP32 vectors and the transfer to the linear level."""
    return (36.0 + 5.0 * 48.0 + 57.0) * n


def check(estimate: Estimate, free: int) -> None:
    """Refuse what does not fit, before it is tried.

    Parameters
    ----------
    free : bytes free on the device.

    Raises
    ------
    MemoryShortageError
        Names both sizes, the largest part and what would help.
    """
    if estimate.needed <= free:
        return
    largest = max(estimate.parts, key=lambda name: estimate.parts[name])
    remedies = ["a coarser mesh (mesh.size, mesh.refine)"]
    if estimate.creep > 0:
        remedies.insert(0, "fewer modes (a larger time_tolerance)")
    remedies.append("more GPUs, or one with more memory")
    message = (
        f"the group needs about {estimate.needed / 1e9:.1f} GB "
        f"({', '.join(f'{k} {v / 1e9:.1f}' for k, v in estimate.parts.items())}) "
        f"and {free / 1e9:.1f} GB are free; most goes to {largest}. "
        f"What helps: {'; '.join(remedies)}"
    )
    raise MemoryShortageError(message)
