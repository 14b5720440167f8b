"""The ground surface as it is stored: slit where a fault breaks it.

At a node of a fault the solver knows the mean of the two sides. Where the fault
reaches the ground, the surface therefore gets such a node twice, once for each
side, so that interpolation never mixes hanging wall and footwall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from afterslip_solver.mesh.topology import cell_faces, face_keys
from afterslip_solver.model import Float, Int, Model


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of a trace that move with a fault's slip.

    Attributes
    ----------
    fault : name of the fault.
    rows : (k,) int64, rows of the trace.
    index : (k,) int64, positions in the fault's nodes.
    sign : (k,) float64, +0.5 or -0.5.
    """

    fault: str
    rows: Int
    index: Int
    sign: Float


@dataclass(frozen=True, slots=True)
class Trace:
    """Surface nodes, two-sided along faults that break the ground.

    Attributes
    ----------
    nodes : (n_trace,) int64, mesh nodes; the surface's own in their order, then the
        footwall's copies.
    faces : (n_face, 6) int64, rows of ``nodes``: corners, then midpoints of
        (0,1), (1,2), (2,0).
    sides : what to add along faults.
    """

    nodes: Int
    faces: Int
    sides: tuple[Side, ...]

    def add_offsets(self, response: Float, slip: dict[str, Float]) -> None:
        """Turn means into the motion of each side, in place.

        Parameters
        ----------
        response : (n_lane, n_mode, n_trace, 3) float64, m; only the modes that
            hold the slip itself (the elastic one, or all steps).
        slip : fault name → (n_fault_node, 3, n_lane) float64, m.
        """
        for side in self.sides:
            if side.fault in slip:
                jump = side.sign[:, None, None] * slip[side.fault][side.index]
                response[:, :, side.rows] += jump.transpose(2, 0, 1)[:, None]


def two_sided(model: Model) -> Trace:
    """Slit the model's surface along its faults.

    Where faults cross at the ground each part between them has rows of its own.
    """
    surface = model.surface
    nodes = surface.nodes
    faces = surface.faces.copy()
    on_ground: dict[str, tuple[Int, Int, Float]] = {}
    for name, split in model.splits.items():
        face, element = _owners(model, split.elements)
        elements = model.mesh.elements[split.elements[element]]
        # (k, 6, 10): which local node of the owner each node of the face is
        match = surface.nodes[surface.faces[face]][:, :, None] == elements[:, None, :]
        local = match.argmax(axis=2)
        sign = np.take_along_axis(split.sign[element], local, axis=1)
        index = np.take_along_axis(split.index[element], local, axis=1)
        minus = sign < 0.0
        # of a row that another fault has made, this one makes another
        doubled, copies = np.unique(faces[face][minus], return_inverse=True)
        rows = faces[face]
        rows[minus] = len(nodes) + copies
        faces[face] = rows
        nodes = np.concatenate([nodes, nodes[doubled]])
        on_ground[name] = face, index, sign
    sides = []
    for name, (face, index, sign) in on_ground.items():
        displaced = sign != 0.0
        if displaced.any():
            found, first = np.unique(faces[face][displaced], return_index=True)
            at = index[displaced][first], sign[displaced][first]
            sides.append(Side(name, found, *at))
    return Trace(nodes=nodes, faces=faces, sides=tuple(sides))


def _owners(model: Model, elements: Int) -> tuple[Int, Int]:
    """Find the surface faces of some elements.

    Returns
    -------
    face : (k,) int64, number of the surface face.
    element : (k,) int64, position in ``elements`` of its owner.
    """
    surface, n_vertex = model.surface, model.mesh.n_vertex
    candidates = cell_faces(model.mesh.cells[elements]).reshape(-1, 3)
    # hardly any face is at the ground: compare those only whose corners are
    ground = np.zeros(n_vertex, dtype=bool)
    corners = surface.nodes[surface.faces[:, :3]]
    ground[corners] = True
    element = np.flatnonzero(ground[candidates].all(axis=1))
    both = np.concatenate([corners, candidates[element]])
    keys = face_keys(both, n_vertex)
    order = np.argsort(keys[: len(corners)])
    wanted = keys[len(corners) :]
    place = np.searchsorted(keys[order], wanted) % len(order)
    face = order[place]
    same = keys[face] == wanted
    return face[same], element[same] // 4
