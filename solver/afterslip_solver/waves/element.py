"""The voxel element as one family with two numbers, and its symbol.

On a voxel of edge h the gradient of corner values is carried by the modes 1, r_j, r_k
and r_j r_k. With corner signs s_ai,

    int d_i phi_a d_i phi_b = h/16 s_ai s_bi (1 + B s_aj s_bj) (1 + B s_ak s_bk)
    int d_i phi_a d_j phi_b = h/16 s_ai s_bj (1 + B s_ak s_bk)         (i != j)

B = 1/3 is the trilinear element with eight quadrature points. B = 3/4 is the
orthogonal element, whose displacement is constant on octants, so that its consistent
mass is diagonal: Ichimura, Fujita, Hori & Lalith, Low-ordered orthogonal voxel finite
element with INT8 tensor cores for GPU-based explicit elastic wave propagation analysis;
derived here from that idea, not taken from their text. The lambda and the mu part may
have a number each: with none on the lambda part S waves feel no stiffness of volume,
whatever vp/vs is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afterslip_solver.model import Float

SchemeName = Literal["trilinear", "orthogonal", "selective"]

# signs of the corners; bit i of a corner's number is its side along axis i
SIGNS = np.array([[2 * (a >> i & 1) - 1 for i in range(3)] for a in range(8)])


@dataclass(frozen=True, slots=True)
class Scheme:
    """Weights of the transverse modes in the lambda and the mu part."""

    name: str
    beta_lam: float
    beta_mu: float


SCHEMES: dict[str, Scheme] = {
    "trilinear": Scheme("trilinear", 1.0 / 3.0, 1.0 / 3.0),
    "orthogonal": Scheme("orthogonal", 0.75, 0.75),
    "selective": Scheme("selective", 0.0, 0.9),
}


def _products(beta: float) -> Float:
    """(3, 3, 8, 8) int d_i phi_a d_j phi_b for h = 1."""
    found = np.ones((3, 3, 8, 8)) / 16.0
    for i in range(3):
        for j in range(3):
            found[i, j] *= np.outer(SIGNS[:, i], SIGNS[:, j])
            for k in {0, 1, 2} - {i, j}:
                found[i, j] *= 1.0 + beta * np.outer(SIGNS[:, k], SIGNS[:, k])
    return found


def element_matrix(lam: float, mu: float, h: float, scheme: Scheme) -> Float:
    """Stiffness of one voxel.

    Parameters
    ----------
    lam, mu : Pa. h : m.

    Returns
    -------
    (24, 24) float64, N/m, of the components of corner 0, then of corner 1, ...
    """
    volume, shear = _products(scheme.beta_lam), _products(scheme.beta_mu)
    trace = np.einsum("kkab->ab", shear)
    found = np.zeros((8, 3, 8, 3))
    for i in range(3):
        for j in range(3):
            found[:, i, :, j] = lam * volume[i, j] + mu * shear[j, i]
        found[:, i, :, i] += mu * trace
    return h * found.reshape(24, 24)


def symbol(theta: ArrayLike, lam: float, mu: float, scheme: Scheme) -> Float:
    """Stiffness of plane waves exp(i theta . n) on voxels of one material, h = 1.

    Parameters
    ----------
    theta : (n, 3) phase from node to node along each axis.

    Returns
    -------
    (n, 3, 3) float64, real and symmetric.
    """
    angle = np.asarray(theta, dtype=np.float64)
    sin2, cos2 = np.sin(angle / 2) ** 2, np.cos(angle / 2) ** 2
    sine = np.sin(angle)
    found = np.empty((len(angle), 3, 3))

    def normal(beta: float, i: int) -> Float:
        j, k = (axis for axis in range(3) if axis != i)
        along = cos2 + beta * sin2
        return np.asarray(4.0 * sin2[:, i] * along[:, j] * along[:, k])

    every = np.sum([normal(scheme.beta_mu, q) for q in range(3)], axis=0)
    for i in range(3):
        own = lam * normal(scheme.beta_lam, i) + mu * normal(scheme.beta_mu, i)
        found[:, i, i] = own + mu * every
        for j in {0, 1, 2} - {i}:
            k = 3 - i - j
            mixed = lam * (cos2 + scheme.beta_lam * sin2)[:, k]
            mixed += mu * (cos2 + scheme.beta_mu * sin2)[:, k]
            found[:, i, j] = sine[:, i] * sine[:, j] * mixed
    return found


def corner_offsets(nx: int, ny: int) -> NDArray[np.int64]:
    """(8,) how far the corners of a voxel are from its first one in node numbers."""
    corners = np.arange(8)
    return np.asarray(
        (corners & 1) + (corners >> 1 & 1) * nx + (corners >> 2) * nx * ny
    )
