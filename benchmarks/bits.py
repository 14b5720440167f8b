"""Digests of small groups' results: whether a change of the code changes any bit.

    python benchmarks/bits.py [--json FILE]     write the digests
    python benchmarks/bits.py --against FILE    compare with digests of earlier code

Run it before and after a change that must not alter numbers. Digests hold for one
machine and one set of libraries only, since processors and BLAS versions differ in the
last bits, so none are committed. The cases are spectral and stepping integrators with
every predictor, Burgers bodies, the restoring force, the three-level preconditioner, a
refined curved fault, ranks side by side, and a curve resumed from a checkpoint.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from afterslip_common.terms import KM, YEAR
from afterslip_solver import backend as backends
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.materials import Layer, assign, restoring_force
from afterslip_solver.mesh import (
    Box,
    CurvedFault,
    MeshSize,
    boundary_conditions,
    build_mesh,
    split_nodes,
    surface_trace,
)
from afterslip_solver.mesh.imported import imported_fault
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.model import (
    FaultMesh,
    Float,
    GroupResult,
    Materials,
    Model,
    SolverSettings,
)
from afterslip_solver.parallel import DistributedModel, ThreadRankGroup
from afterslip_solver.testing.box import box_with_fault

CURVE = {"times": (0.0, 0.3 * YEAR, YEAR), "until": YEAR}
MARCH = {**CURVE, "integrator": "stepping", "step": YEAR / 10}


def box(n: tuple[int, int, int] = (4, 4, 4)) -> Model:
    """Vertical fault in cubes of 10 km, two viscosities below an elastic lid."""
    lengths = (10 * KM * n[0], 10 * KM * n[1], 10 * KM * n[2])
    made = box_with_fault(n, lengths, length=20 * KM, top=10 * KM, width=10 * KM)
    centre = made.mesh.nodes[made.mesh.cells].mean(axis=1)
    lid = centre[:, 2] > -10 * KM
    mu, lam = np.where(lid, 3e10, 6e10), np.where(lid, 3.2e10, 7e10)
    viscosity = np.where(lid, np.inf, np.where(centre[:, 0] < 0, 1e19, 3e18))
    rho = np.where(lid, 2800.0, 3300.0)
    fixed = boundary_conditions(made.mesh)
    materials = Materials(lam, mu, rho, viscosity)
    trace = surface_trace(made.mesh)
    return Model(made.mesh, materials, fixed, trace, made.faults, made.splits)


def burgers(model: Model) -> Model:
    """Give half the viscoelastic elements a Kelvin element."""
    m = model.materials
    has = np.isfinite(m.viscosity) & (np.arange(len(m.mu)) % 2 == 0)
    modulus, viscosity = np.where(has, 2e10, np.inf), np.where(has, 1e18, np.inf)
    changed = replace(m, kelvin_modulus=modulus, kelvin_viscosity=viscosity)
    return replace(model, materials=changed)


def with_gravity(model: Model) -> Model:
    """Add the restoring force of the free surface and the density jump."""
    springs, _ = restoring_force(model.mesh, model.materials.rho)
    return replace(model, restoring=springs)


def refined(model: Model) -> Model:
    """Halve all edges of a model of one fault."""
    (name, fault), m = *model.faults.items(), model.materials
    corners = {name: fault.triangles[:, :3]}
    mesh, triangles, _ = refine_uniformly(model.mesh, corners, {})
    fine = imported_fault(mesh, name, triangles[name])
    eight = (np.repeat(v, 8) for v in (m.lam, m.mu, m.rho, m.viscosity))
    return Model(
        mesh,
        Materials(*eight),
        boundary_conditions(mesh),
        surface_trace(mesh),
        {name: fine},
        {name: split_nodes(mesh, fine)},
    )


def curved() -> Model:
    """Cylindrical interface that gmsh embeds in a coarse box, refined once."""
    along, depth = np.meshgrid(np.linspace(-60, 60, 20), np.linspace(8, 40, 20))
    across = np.sqrt(150.0**2 - (148.0 - depth) ** 2) - 26.0
    points = KM * np.column_stack([across.ravel(), along.ravel(), -depth.ravel()])
    domain = Box((-150 * KM, 150 * KM), (-150 * KM, 150 * KM), 100 * KM)
    size = MeshSize(25 * KM, 80 * KM, 0.5)
    fault = CurvedFault("slab", points, None, 40 * KM)
    made = build_mesh(domain, [fault], size, refine=1)
    layers = [
        Layer("lid", 30 * KM, 6000.0, 3500.0, 2800.0),
        Layer("mantle", 100 * KM, 8000.0, 4600.0, 3300.0, viscosity=5e18),
    ]
    return Model(
        made.mesh,
        assign(made.mesh, layers),
        boundary_conditions(made.mesh),
        surface_trace(made.mesh),
        made.faults,
        made.splits,
    )


def smooth_slip(fault: FaultMesh, lanes: int = 4) -> Float:
    """One smooth shape per lane, in turn up dip and along strike."""
    a, d = fault.along / fault.length, fault.down / fault.width
    inside = (a > 0) & (a < 1) & (d > 0) & (d < 1)
    shape = np.where(inside, np.sin(np.pi * a) * np.sin(np.pi * d), 0.0)
    slip = np.zeros((len(fault.nodes), 3, lanes))
    for lane in range(lanes):
        way = fault.updip if lane % 2 == 0 else fault.strike
        slip[:, :, lane] = (shape * (1.0 + lane * a))[:, None] * way
    return slip


def slips(model: Model) -> dict[str, Float]:
    """Slip on every fault of a model."""
    return {name: smooth_slip(fault) for name, fault in model.faults.items()}


def solved(model: Model, **changes: Any) -> GroupResult:
    """Solve one group on the CPU."""
    prepared = prepare(model, SolverSettings(**changes), backends.get("cpu"))
    return prepared.solve(slips(model), model.surface.nodes)


def on_ranks(model: Model, size: int, **changes: Any) -> GroupResult:
    """Solve one group by ranks on threads, each with its part of the mesh."""
    ranks = ThreadRankGroup(size, lambda: backends.get("cpu", threads=1))
    parts = DistributedModel(model, SolverSettings(**changes), ranks)
    return parts.solve(slips(model), model.surface.nodes)


class _Newest:
    """Holds the newest checkpoint."""

    def __init__(self) -> None:
        self.state: dict[str, Any] | None = None

    def load(self) -> dict[str, Any] | None:
        return self.state

    def due(self) -> bool:
        return True

    def save(self, state: dict[str, Any]) -> None:
        self.state = {key: np.array(value) for key, value in state.items()}


def resumed(model: Model, **changes: Any) -> GroupResult:
    """Stop a curve after three solves and go on from its checkpoint."""
    prepared = prepare(model, SolverSettings(**changes), backends.get("cpu"))
    newest, news = _Newest(), list[dict[str, Any]]()
    nodes = model.surface.nodes
    stop = lambda: news[-1]["solve"] >= 3  # noqa: E731
    prepared.solve(slips(model), nodes, news.append, stop, newest)
    return prepared.solve(slips(model), nodes, None, None, newest)


CASES: dict[str, Callable[[], GroupResult]] = {
    "elastic": lambda: solved(box((6, 6, 4))),
    "polynomial": lambda: solved(box(), scheme="polynomial", **CURVE),
    "shift_invert": lambda: solved(box(), scheme="shift_invert", **CURVE),
    "burgers": lambda: solved(burgers(box()), scheme="polynomial", **CURVE),
    "burgers_shift": lambda: solved(burgers(box()), scheme="shift_invert", **CURVE),
    "burgers_stepping": lambda: solved(burgers(box()), **MARCH),
    "none": lambda: solved(box(), predictor="none", **MARCH),
    "adams_bashforth": lambda: solved(box(), predictor="adams_bashforth", **MARCH),
    "galerkin": lambda: solved(box(), predictor="galerkin", **MARCH),
    "dmd": lambda: solved(box(), predictor="dmd", **MARCH),
    "four_steps": lambda: solved(box(), predictor="four_steps", **MARCH),
    "restoring": lambda: solved(with_gravity(box()), **CURVE),
    "restoring_stepping": lambda: solved(with_gravity(box()), **MARCH),
    "three_level": lambda: solved(box(), preconditioner="three_level"),
    "refined": lambda: solved(refined(box((6, 6, 4)))),
    "curved": lambda: solved(curved(), **CURVE),
    "ranks": lambda: on_ranks(with_gravity(burgers(box((6, 6, 4)))), 3, **CURVE),
    "ranks_refined": lambda: on_ranks(refined(box((6, 6, 4))), 2),
    "resumed": lambda: resumed(box(), **CURVE),
    "resumed_four": lambda: resumed(box(), predictor="four_steps", **MARCH),
}


def digest(result: GroupResult) -> str:
    """SHA-256 of a result's arrays, its curve between outputs and its history."""
    found = hashlib.sha256()
    arrays = (
        result.response,
        result.recurrence,
        result.start_norm,
        result.shift,
        result.mode_count,
        result.step_times,
        result.residual,
        result.time_error,
        evaluate_curve(result, YEAR * np.array([0.0, 0.17, 0.8])),
    )
    for array in arrays:
        found.update(repr((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).data)
    solves = [(h["phase"], h["iterations"], h["residuals"]) for h in result.history]
    counts = (result.outcome, result.iterations, result.solves)
    found.update(repr((counts, solves)).encode())
    return found.hexdigest()


def main() -> None:
    """Print the digests, write or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    before = json.loads(options.against.read_text()) if options.against else {}
    found, changed = {}, []
    for name in options.only:
        begin = time.perf_counter()
        result = CASES[name]()
        found[name] = digest(result)
        same = before.get(name, found[name]) == found[name]
        changed += [] if same else [name]
        note = f"{result.outcome}, {result.solves} solves"
        seconds = time.perf_counter() - begin
        mark = "" if same else "  CHANGED"
        print(
            f"{name:20s} {found[name][:16]}  {note}, {seconds:.1f} s{mark}", flush=True
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if changed:
        sys.exit(f"bits changed: {', '.join(changed)}")


if __name__ == "__main__":
    main()
