"""Errors on the ground near an abrupt end of slip on a curved fault, and their parts.

    python benchmarks/end_of_slip.py --json FILE                              # minutes
    python benchmarks/end_of_slip.py --json FILE --docs docs/verification.md  # table

The interfaces of `space_error.py` slip uniformly to the ground in a half-space, on
meshes that were refined once. What is exact are dislocations on triangles of 1 km of
the interface itself; those on the triangles of a mesh, with the slip of its nodes, lack
the elements' own error only.
"""

import itertools

import numpy as np
from interfaces import interface, outline, slab
from one_table import run
from scipy.spatial import cKDTree
from space_error import HALF

from afterslip.units import KM
from afterslip_common.record import Record, record
from afterslip_solver.greens import prepare
from afterslip_solver.greens.space_error import NESTED
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import (
    Box,
    CurvedFault,
    Interface,
    Locator,
    MeshSize,
    build_mesh,
    coarsened,
    surface_trace,
)
from afterslip_solver.mesh.curved import CurvedSurface, place_curved
from afterslip_solver.model import FaultMesh, Float, Model, SolverSettings
from afterslip_solver.reference import dislocation_surface
from afterslip_solver.sources import element_width, uniform_slip
from afterslip_solver.sources.profile import step_profile
from afterslip_solver.verification.blocks import (
    held_sides_and_bottom,
    uniform_materials,
)
from afterslip_workers.engines.viscoelastic.places import Places, at_points

BEGIN, END = "<!-- end of slip -->", "<!-- end of end of slip -->"
SURFACES = {
    "interface of the slab": (slab, 0.009),
    "curved interface": (interface, 0.022),
}
# km, of the mesh before it is refined
EDGES = (16.0, 12.0, 8.8, 6.4)
# of edges at the ends of slip at the ground over those on the fault
ENDS = (1.0, 0.4)
BOX = Box((-HALF * KM, HALF * KM), (-HALF * KM, HALF * KM), HALF * KM)
# edges from the end within which a point is near it
NEAR = 1.5
PARTS = ("elements", "slip on them", "slip falling over an element", "estimate")


def fault_of(name: str) -> CurvedFault:
    """Return a fault of the problems."""
    points, steeper = SURFACES[name]
    table = np.array([line.split(",") for line in points().split()[1:]], dtype=float)
    rim = np.array([line.split(",") for line in outline(steeper).split()[1:]], float)
    return CurvedFault("main", table * KM * [1.0, 1.0, -1.0], rim * KM)


def exact_slip(placed: CurvedSurface) -> tuple[Float, Float]:
    """Corners (n, 3, 3), m, of triangles of what slips, and slip (n, 6, 3), m."""
    smooth, region = placed.smooth, placed.region
    s = np.linspace(region.lines[0], region.lines[-1], 91)
    part = np.linspace(0.0, 1.0, 121)
    bottom = np.interp(s, region.lines, region.bottom)
    nodes = smooth.position(s[:, None], part * bottom[:, None]).reshape(-1, 3)
    number = np.arange(len(nodes)).reshape(len(s), len(part))
    a, b = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
    c, d = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
    corners = nodes[np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    down = normal[:, 2] < 0.0
    corners[down], normal[down] = corners[down][:, [0, 2, 1]], -normal[down]
    across = np.hypot(normal[:, 0], normal[:, 1])[:, None]
    strike = np.stack([-normal[:, 1], normal[:, 0], np.zeros(len(normal))], 1) / across
    updip = np.cross(normal, strike)
    updip /= np.linalg.norm(updip, axis=1, keepdims=True)
    return corners, np.repeat(updip[:, None], 6, axis=1)


def linear(fault: FaultMesh) -> Float:
    """Slip that falls linearly over an element at every edge, m."""
    ramp, whole = element_width(fault), (0.0, fault.length)
    along = step_profile(
        fault.along, fault.length, whole, ramp, (False, False), sharp_ends=False
    )
    whole = (0.0, fault.width)
    down = step_profile(
        fault.down, fault.width, whole, ramp, (True, False), sharp_ends=False
    )
    return np.asarray((along * down)[:, None] * fault.updip)


def moved(model: Model, points: Float) -> Float:
    """(n_point, 3) m, by uniform slip."""
    slip = uniform_slip(model.faults["main"], dip=1.0)[:, :, None]
    elements, nodes, weights = Locator(model.mesh).find(points)
    trace, rows = np.unique(nodes, return_inverse=True)
    found = prepare(model, SolverSettings(), "cpu").solve({"main": slip}, trace)
    places = Places(elements, trace, rows.reshape(nodes.shape), weights, points[:, :2])
    return at_points(found, model, {"main": slip}, places, np.zeros(1))[0]


def by_slip(model: Model, slip: Float, points: Float) -> Float:
    """(n_point, 3) m, in the half-space, by slip (n_fault_node, 3) of a mesh."""
    fault = model.faults["main"]
    nodal = slip[np.searchsorted(fault.nodes, fault.triangles)]
    some = np.abs(nodal).max(axis=(1, 2)) > 0.0
    corners = model.mesh.nodes[fault.triangles[some, :3]]
    return dislocation_surface(points[:, :2], corners, nodal[some])


def points_of(smooth: Interface, at: float) -> tuple[Float, Float]:
    """Points (n, 3) m around an end of slip, and their distances, m, from the trace."""
    x, y = np.meshgrid(np.arange(-20.0, 61.0, 3.0), np.arange(-13.5, 14.0, 3.0))
    end = smooth.position(at, 0.0)
    points = end + KM * np.column_stack([x.ravel(), y.ravel(), 0.0 * x.ravel()])
    s = np.linspace(at - 30.0 * KM, at + 30.0 * KM, 400)
    trace = smooth.position(s, 0.0)[:, :2]
    return points, cKDTree(trace).query(points[:, :2])[0]


def model_of(name: str, edge: float, ends: float) -> tuple[Model, CurvedSurface]:
    """Return an interface in a half-space, on a mesh of edges in km, refined once."""
    size = MeshSize(edge * KM, 720.0 * KM, 0.7, ends)
    made = build_mesh(BOX, [fault_of(name)], size, refine=1)
    mesh = made.mesh
    rock, held = uniform_materials(mesh, 30e9, 30e9), held_sides_and_bottom(mesh)
    model = Model(mesh, rock, held, surface_trace(mesh), made.faults, made.splits)
    return model, place_curved(fault_of(name), BOX, size.fault)


def errors_of(model: Model, points: Float, exact: Float) -> Float:
    """(1 + n_part, n_point) m, the error and what it consists of."""
    coarse, fault = coarsened(model, restoring_force), model.faults["main"]
    assert coarse is not None
    found = moved(model, points)
    applied = by_slip(model, uniform_slip(fault, dip=1.0), points)
    differences = (
        found - exact,
        found - applied,
        applied - exact,
        by_slip(model, linear(fault), points) - exact,
        (found - moved(coarse, points)) / NESTED,
    )
    return np.asarray(np.linalg.norm(np.stack(differences), axis=2))


def measure(name: str) -> list[Record]:
    """Return the records of an interface, two a mesh: near the end, and beyond."""
    out: list[Record] = []
    for edge, ends in itertools.product(EDGES, ENDS):
        model, placed = model_of(name, edge, ends)
        at, half = float(placed.region.lines[-1]), 0.5 * edge * KM
        points, off = points_of(placed.smooth, at)
        points = points[off > half]
        exact = dislocation_surface(points[:, :2], *exact_slip(placed))
        peak = np.linalg.norm(exact, axis=1).max()
        errors = errors_of(model, points, exact) / peak
        end = placed.smooth.position(at, np.linspace(0.0, 40.0 * KM, 200))
        near = cKDTree(end).query(points)[0] < NEAR * half
        count = 3 * len(model.mesh.nodes)
        for words, here in (("near", near), ("beyond", ~near)):
            true, *parts = errors[:, here].max(axis=1)
            note = f"{name}; {0.5 * edge:.2g} km; {ends:g}; {count:,}; {words}; "
            note += "; ".join(
                f"{part} {value:.2%}" for part, value in zip(PARTS, parts, strict=True)
            )
            metric = f"{words}_end_of_slip_{name.replace(' ', '_')}_{edge:g}_{ends:g}"
            out.append(record(metric, float(true), "1", float(parts[-1]), note))
            print(f"{note}: true {true:.2%}", flush=True)
    return out


def table(content: dict) -> list[str]:
    """Return the page's lines."""
    lines = [
        f"On {content['device']}, commit {content['commit']}.",
        "",
        "| Interface | Edges | At ends | Unknowns | Points | Error | Of the elements "
        "| Of slip on them | Of slip that falls over an element | Estimate |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for item in content["records"]:
        words, edge, ends, count, where, *parts = item["note"].split("; ")
        figures = [
            part.removeprefix(name).strip()
            for part, name in zip(parts, PARTS, strict=True)
        ]
        lines.append(
            f"| {words} | {edge} | {ends} | {count} | {where} | {item['value']:.2%} | "
            f"{' | '.join(figures)} |"
        )
    return lines


def measured() -> list[Record]:
    """Return the records of both interfaces."""
    return [item for name in SURFACES for item in measure(name)]


if __name__ == "__main__":
    run(__doc__, (BEGIN, END), table, measured)
