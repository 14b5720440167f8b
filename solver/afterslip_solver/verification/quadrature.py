"""Quadrature on tetrahedra of any degree (Stroud 1971, conical product)."""

from __future__ import annotations

import numpy as np
from scipy.special import roots_jacobi

from afterslip_solver.elements.tetrahedron import (
    barycentric_gradients,
    quadratic_shapes,
)
from afterslip_solver.model import TET_EDGES, Float, TetMesh


def conical(n: int) -> tuple[Float, Float]:
    """Points and weights exact to degree 2 n - 1.

    Returns
    -------
    (n^3, 4) barycentric coordinates, (n^3,) weights with sum 1.
    """
    rules = []
    for power in range(3):
        x, w = roots_jacobi(n, power, 0.0)
        rules.append(((x + 1) / 2, w / w.sum()))
    (a, wa), (b, wb), (c, wc) = rules
    p, q, r = np.meshgrid(c, b, a, indexing="ij")
    weights = (wc[:, None, None] * wb[:, None] * wa).ravel()
    x = p.ravel()
    y = (q * (1 - p)).ravel()
    z = (r * (1 - q) * (1 - p)).ravel()
    return np.column_stack((1 - x - y - z, x, y, z)), weights


def shape_gradients(gradients: Float, barycentric: Float) -> Float:
    """Gradients of the ten shape functions.

    Parameters
    ----------
    gradients : (n_elem, 4, 3) of the barycentric coordinates.
    barycentric : (n_point, 4).

    Returns
    -------
    (n_elem, n_point, 10, 3).
    """
    corner = (4 * barycentric - 1)[None, :, :, None] * gradients[:, None]
    first = [a for a, _ in TET_EDGES]
    second = [b for _, b in TET_EDGES]
    point = barycentric[None, :, :, None]
    middle = 4 * (
        point[:, :, first] * gradients[:, None, second]
        + point[:, :, second] * gradients[:, None, first]
    )
    return np.concatenate((corner, middle), axis=2)


class Quadrature:
    """Points of a mesh where fields are compared.

    Attributes
    ----------
    points : (n_elem, n_point, 3) m. weights : (n_elem, n_point) m3.
    shapes : (n_point, 10). gradients : (n_elem, n_point, 10, 3).
    """

    def __init__(self, mesh: TetMesh, n: int = 4) -> None:
        barycentric, weights = conical(n)
        gradients, volume = barycentric_gradients(mesh.nodes, mesh.cells)
        self.elements = mesh.elements
        self.n_node = len(mesh.nodes)
        self.points = np.einsum("qv,evx->eqx", barycentric, mesh.nodes[mesh.cells])
        self.weights = volume[:, None] * weights
        self.shapes = quadratic_shapes(barycentric)
        self.gradients = shape_gradients(gradients, barycentric)

    def load(self, force: Float) -> Float:
        """(n_node, 3) integral of force (n_elem, n_point, 3) times the shapes."""
        local = np.einsum("eq,eqx,qa->eax", self.weights, force, self.shapes)
        out = np.zeros((self.n_node, 3))
        np.add.at(out, self.elements, local)
        return out

    def values(self, u: Float) -> Float:
        """(n_elem, n_point, 3) of nodal u (n_node, 3)."""
        return np.asarray(np.einsum("qa,eax->eqx", self.shapes, u[self.elements]))

    def gradient(self, u: Float) -> Float:
        """(n_elem, n_point, 3, 3): component, derivative."""
        nodal = u[self.elements]
        return np.asarray(np.einsum("eqaj,eai->eqij", self.gradients, nodal))

    def norm(self, square: Float) -> float:
        """Root of the integral of (n_elem, n_point)."""
        return float(np.sqrt((self.weights * square).sum()))
