"""Displacement inside an elastic half-space by shear dislocations.

The displacement by a point force in a half-space (Mindlin 1936) is taken in the form of
Okada, Y. (1992), Internal deformation due to shear and tensile faults in a half-space,
Bull. Seism. Soc. Am. 82, 1018-1040, equations 2 to 5. A dislocation is the derivative
of it with respect to the source, found here by a complex step, exact to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.jit.compiling import compiled
from afterslip_solver.model import Float
from afterslip_solver.reference.halfspace import PointSources

_STEP = 1e-20


@compiled()
def _force(x: Any, source: Any, force: Any, alpha: float, out: Any) -> None:
    """Displacement times 8 pi mu at x by a force at a complex source; z up."""
    r1, r2 = x[0] - source[0], x[1] - source[1]
    out[0] = out[1] = out[2] = 0.0
    along = r1 * force[0] + r2 * force[1]
    # the source itself (u_A at -x_3), and its image (all the rest)
    for image in range(2):
        r3 = x[2] - source[2] if image == 0 else -x[2] - source[2]
        square = r1 * r1 + r2 * r2 + r3 * r3
        one = 1.0 / np.sqrt(square)
        cube = one / square
        dot = along + r3 * force[2]
        sign = 1.0 if image == 0 else -1.0
        scale = alpha * dot * cube
        out[0] += sign * ((2.0 - alpha) * force[0] * one + scale * r1)
        out[1] += sign * ((2.0 - alpha) * force[1] * one + scale * r2)
        out[2] += sign * ((2.0 - alpha) * force[2] * one + scale * r3)
        if image == 0:
            continue
        # u_B
        part = 2.0 * (1.0 - alpha) / alpha
        q = 1.0 / (1.0 / one + r3)
        flat = along * one * q * q
        out[0] += 2.0 * (force[0] * one + dot * r1 * cube)
        out[1] += 2.0 * (force[1] * one + dot * r2 * cube)
        out[2] += 2.0 * (force[2] * one + dot * r3 * cube)
        out[0] += part * (force[0] * q + r1 * force[2] * one * q - flat * r1)
        out[1] += part * (force[1] * q + r2 * force[2] * one * q - flat * r2)
        out[2] += part * (force[2] * one - along * one * q)
        # x_3 u_C
        depth = 2.0 * x[2]
        fifth = 3.0 * cube / square
        near = alpha * source[2]
        turn = 2.0 - alpha
        out[0] += depth * (
            turn * r1 * force[2] * cube + near * (force[0] * cube - dot * r1 * fifth)
        )
        out[1] += depth * (
            turn * r2 * force[2] * cube + near * (force[1] * cube - dot * r2 * fifth)
        )
        out[2] -= depth * (
            -turn * along * cube + near * (force[2] * cube - dot * r3 * fifth)
        )


@compiled()
def _sum_sources(
    points: Any, position: Any, potency: Any, normal: Any, alpha: float, out: Any
) -> None:
    source = np.empty(3, dtype=np.complex128)
    force = np.empty(3, dtype=np.complex128)
    value = np.empty(3, dtype=np.complex128)
    for p in range(len(points)):
        for s in range(len(position)):
            for turn in range(2):
                along = normal[s] if turn == 0 else potency[s]
                other = potency[s] if turn == 0 else normal[s]
                for i in range(3):
                    source[i] = position[s, i] + 1j * _STEP * along[i]
                    force[i] = other[i]
                _force(points[p], source, force, alpha, value)
                for i in range(3):
                    out[p, i] += value[i].imag


def interior_displacement(
    points: Float, sources: PointSources, poisson: float = 0.25
) -> Float:
    """Displacement anywhere in the half-space, summed over shear point sources.

    Parameters
    ----------
    points : (n_point, 3) m, z not above 0, none at a source.
    sources : potencies at right angles to their normals.
    poisson : Poisson's ratio, below 0.5.

    Returns
    -------
    (n_point, 3) m, east, north, up. Raises ValueError for opening.
    """
    opening = np.abs((sources.potency * sources.normal).sum(axis=1))
    if (opening > 1e-9 * np.linalg.norm(sources.potency, axis=1)).any():
        raise ValueError("only shear dislocations are known here, not opening")
    alpha = 0.5 / (1.0 - poisson)
    result = np.zeros((len(points), 3))
    arrays = (sources.position, sources.potency, sources.normal)
    _sum_sources(
        np.ascontiguousarray(points, dtype=np.float64),
        *(np.ascontiguousarray(a, dtype=np.float64) for a in arrays),
        alpha,
        result,
    )
    return np.asarray(result / (8.0 * np.pi * _STEP))
