"""How far a boundary is from the faces of the mesh that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.spatial import cKDTree

from afterslip_solver.materials.assign import inside_of
from afterslip_solver.materials.properties import Body, Layer
from afterslip_solver.mesh.tables.bisection import centres
from afterslip_solver.mesh.thin import longest_edge, within
from afterslip_solver.mesh.topology import any_corner, cell_faces, face_keys
from afterslip_solver.model import Bool, Float, Int, TetMesh

# m; a boundary that the mesh follows is off by rounding only
_FOLLOWED = 1.0
# as a share of the length of edges: those of steps are off by more, chords of curved
# boundaries by less
_STEP = 0.08
# as a share of a body's thickness: faces that are anywhere in a body, or beyond its
# sides, are off by more, however long their edges are
_ANYWHERE = 0.25


@dataclass(frozen=True, slots=True)
class Misfit:
    """How far the faces of a mesh are from a boundary.

    Attributes
    ----------
    note : says it.
    steps : whether the mesh does not follow the boundary but steps around it.
    """

    note: str
    steps: bool


def describe_misfits(
    mesh: TetMesh,
    layers: Sequence[Layer],
    bodies: Sequence[Body],
    faults: Float | None = None,
    edge: float = 0.0,
) -> Iterator[Misfit]:
    """Say of every boundary that the mesh does not follow exactly how far it is off.

    Parameters
    ----------
    faults : (n, 3) m, points on the faults. Far from them elements are so large that
        what they miss would hide what matters: the misfit within half the faults'
        extent is given too, and decides on whether there are steps.
    edge : m, asked for on the faults: says whether a body is too thin for it.
    """
    # most of what each does is one thread's where there are millions of elements
    with ThreadPoolExecutor() as pool:
        found = [pool.submit(_of_layer, mesh, one, bodies, faults) for one in layers]
        for number, body in enumerate(bodies, start=1):
            over_it = bodies[number:]
            found.append(pool.submit(_of_body, mesh, body, over_it, faults, edge))
    for misfits in found:
        yield from misfits.result()


def _of_layer(
    mesh: TetMesh, layer: Layer, bodies: Sequence[Body], faults: Float | None
) -> list[Misfit]:
    """Describe the bottom of a layer, unless it is that of the domain."""
    vertices, depth = mesh.nodes[: mesh.n_vertex], layer.bottom
    if depth >= -float(vertices[:, 2].min()):
        return []
    above = partial(_above, depth)
    some = _beside(mesh, above(vertices), (0.0,))
    inside = above(_centres(mesh, some)) < 0.0
    faces = _faces(mesh, some, inside, bodies)
    name = f"layer {layer.name}", f"its bottom at {depth / 1e3:g} km"
    return list(_described(name, faces, above, faults))


def _of_body(
    mesh: TetMesh,
    body: Body,
    bodies: Sequence[Body],
    faults: Float | None,
    edge: float,
) -> list[Misfit]:
    """Describe the sides of a body beside those that lie over it."""
    vertices = mesh.nodes[: mesh.n_vertex]
    some = _beside(mesh, body.across(vertices), (0.0, body.thickness))
    inside = inside_of(body, _centres(mesh, some))
    if not inside.any():
        found = [_absent(body)]
    else:
        faces = _faces(mesh, some, inside, bodies)
        name, thick = (f"body {body.name}", "all of its boundary"), body.thickness
        found = list(_described(name, faces, partial(_from, body), faults, thick))
    if edge <= longest_edge(body.thickness):
        return found
    more = _too_thin(body)
    return [replace(m, note=m.note + more) if m.steps else m for m in found]


def _absent(body: Body) -> Misfit:
    return Misfit(
        f"body {body.name}: no element of the mesh has its centre in it", True
    )


def _too_thin(body: Body) -> str:
    """Say which size would do."""
    would = 0.95e-3 * longest_edge(body.thickness)
    return (
        f", as its {body.thickness / 1e3:.2g} km are thin beside the elements: "
        f"mesh.size.fault of {would:.2g} km would do"
    )


def _centres(mesh: TetMesh, elements: Int) -> Float:
    return centres(mesh.nodes, mesh.cells[elements])


def _beside(mesh: TetMesh, value: Float, levels: Sequence[float]) -> Int:
    """Elements with a corner of one in which a function takes one of the levels.

    All faces between the two sides of a boundary are theirs; a large mesh has many
    more elements.

    Parameters
    ----------
    value : (n_vertex,) of the function, m.
    """
    cut = np.zeros(len(mesh.cells), bool)
    for level in levels:
        below, above = value <= level + _FOLLOWED, value >= level - _FOLLOWED
        cut |= any_corner(mesh.cells, below) & any_corner(mesh.cells, above)
    touched = np.zeros(mesh.n_vertex, bool)
    touched[mesh.cells[cut]] = True
    return np.flatnonzero(any_corner(mesh.cells, touched))


def _near(faults: Float, centres: Float) -> Bool:
    """(n,) whether points are within half the faults' extent of them."""
    reach = 0.5 * float(np.linalg.norm(np.ptp(faults, axis=0)))
    return within(cKDTree(faults), reach, centres)


def _faces(
    mesh: TetMesh, elements: Int, inside: Bool, bodies: Sequence[Body]
) -> tuple[Float, Float]:
    """As `steps`, without those inside of bodies that lie over the boundary."""
    corners, area = steps(mesh, elements, inside)
    for body in bodies:
        bare = ~inside_of(body, corners.mean(axis=1)) if len(corners) else slice(None)
        corners, area = corners[bare], area[bare]
    return corners, area


def _described(
    name: tuple[str, str],
    faces: tuple[Float, Float],
    distance: Callable[[Float], Float],
    faults: Float | None,
    thickness: float = np.inf,
) -> Iterator[Misfit]:
    """Say how far off faces are; nothing where the mesh follows the boundary.

    Parameters
    ----------
    thickness : m, of the body that is bounded.
    """
    corners, area = faces
    if not len(corners):
        return
    # midpoints of edges integrate a square exactly where the boundary is a plane
    middles = 0.5 * (corners + np.roll(corners, 1, axis=1))
    square = (distance(middles.reshape(-1, 3)).reshape(-1, 3) ** 2).mean(axis=1)
    whole = _rms(square, area)
    if whole <= _FOLLOWED:
        return
    off, beside = f"{_km(whole)} RMS", ""
    relative, most = whole / _edge(area), whole
    near = _near(faults, corners.mean(axis=1)) if faults is not None else area < 0.0
    if near.any():
        close = _rms(square[near], area[near])
        relative, most = close / _edge(area[near]), close
        off += " everywhere"
        beside = f"{_km(close)} RMS near the faults, " if close > _FOLLOWED else ""
    who, what = name
    stepped = relative > _STEP or most > _ANYWHERE * thickness
    if stepped:
        said = f"the mesh does not follow {what} but steps around it, by {beside}{off}"
    else:
        said = f"faces of the mesh follow {what} within {beside}{off}"
    yield Misfit(f"{who}: {said}", stepped)


def _rms(square: Float, area: Float) -> float:
    return float(np.sqrt(np.average(square, weights=area)))


def _edge(area: Float) -> float:
    """Return the edge, m, of an equilateral triangle of the mean area."""
    return float(np.sqrt(area.mean() * 4.0 / np.sqrt(3.0)))


def _above(depth: float, points: Float) -> Float:
    """Height of points above a depth, m."""
    return np.asarray(points[:, 2] + depth)


def _from(body: Body, points: Float) -> Float:
    """Distance of points from the nearer side of a body, m."""
    across = body.across(points)
    # seaward of the trench the top is the free surface, which the mesh follows
    return np.asarray(np.minimum(np.abs(across), np.abs(body.thickness - across)))


def _km(metres: float) -> str:
    return f"{metres / 1e3:.2g} km"


def steps(mesh: TetMesh, elements: Int, inside: Bool) -> tuple[Float, Float]:
    """Faces between the elements on the two sides of a boundary.

    Elements take the material at their centre: where a mesh does not follow the
    boundary, that makes steps about half an element high.

    Parameters
    ----------
    elements : (n,) all elements near the boundary. inside : (n,) those on one side.

    Returns
    -------
    corners : (n_face, 3, 3) m. area : (n_face,) m2.
    """
    # a face between them has three vertices of elements on both sides
    there = np.zeros((2, mesh.n_vertex), np.bool_)
    cells = mesh.cells[elements]
    there[0, cells[inside]] = True
    there[1, cells[~inside]] = True
    near = any_corner(cells, there[0] & there[1], 3)
    inside = inside[near]
    faces = cell_faces(cells[near]).reshape(-1, 3)
    keys = face_keys(faces, mesh.n_vertex)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    one, other = order[same], order[same + 1]
    between = inside[one // 4] != inside[other // 4]
    corners = mesh.nodes[faces[one[between]]]
    sides = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return corners, 0.5 * np.linalg.norm(np.cross(*sides), axis=1)
