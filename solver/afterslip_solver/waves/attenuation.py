"""Attenuation with nearly constant Q by Zener bodies, one in each voxel.

Coarse-grained memory variables (Day, 1998, Bull. Seism. Soc. Am. 88; Day & Bradley,
2001, Bull. Seism. Soc. Am. 91): of eight relaxation times each voxel of a cube of two
by two by two has one, with eight times its weight, so that waves much longer than two
voxels see all of them. With weights w_k the modulus of a frequency is

    M(omega) = M_u (1 - sum_k w_k / (1 + i omega tau_k)),

and Re M / Im M = Q is linear in the weights:

    sum_k w_k (omega tau_k + 1/Q) / (1 + omega^2 tau_k^2) = 1/Q,

which non-negative least squares solve over the band. P waves, lam + 2 mu, have Qp and S
waves, mu, have Qs. Shapes of a voxel that are not its mean strain do not relax.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from afterslip_solver.backend.waves import Relaxing
from afterslip_solver.model import Float, Int
from afterslip_solver.waves.grid import Medium, WaveError

BODIES = 8
# body of each voxel of a cube, x fastest: short and long times alike on all its faces
ORDER = np.array([0, 3, 5, 6, 7, 4, 2, 1])
# frequencies at which Q is fitted
_FITTED = 60
# by which relaxation reaches beyond the band, where fits are worst at the ends
_WIDER = 3.0
# what weights cost in the fit: where they are alike, so are a cube's voxels
_SMOOTH = 0.05


@dataclass(frozen=True, slots=True)
class Attenuation:
    """Quality factors of the planes of voxels, or of voxels.

    Attributes
    ----------
    band : Hz, lowest and highest frequency at which Q is what is given.
    reference : Hz, at which the speeds of waves are those of the medium.
    qp, qs : (nz - 1,) of P and S waves, upwards like the voxels, or of their shape.
    """

    band: tuple[float, float]
    reference: float
    qp: Float
    qs: Float


def times(band: tuple[float, float]) -> Float:
    """(8,) s, relaxation times, evenly through the logarithms of a wider band."""
    low, high = 2.0 * np.pi * np.array(band) * [1.0 / _WIDER, _WIDER]
    return np.asarray(1.0 / np.geomspace(high, low, BODIES))


def weights(q: float, band: tuple[float, float]) -> Float:
    """(8,) weights of the bodies for a quality factor.

    Raises
    ------
    WaveError
        Q is too low to be reached.
    """
    omega = 2.0 * np.pi * np.geomspace(*band, _FITTED)
    phase = omega[:, None] * times(band)
    matrix = (phase + 1.0 / q) / (1.0 + phase**2)
    cost = np.vstack([matrix, _SMOOTH * np.eye(BODIES)])
    found, _ = nnls(cost, np.append(np.full(_FITTED, 1.0 / q), np.zeros(BODIES)))
    if BODIES * found.max() >= 1.0:
        raise WaveError(f"Q = {q:g} is too low for one Zener body in a voxel")
    return np.asarray(found)


def modulus(
    omega: Float, weight: Float, band: tuple[float, float]
) -> NDArray[np.complex128]:
    """(n,) modulus of angular frequencies, rad/s, over the unrelaxed one."""
    phase = omega[:, None] * times(band)
    return np.asarray(1.0 - (weight / (1.0 + 1j * phase)).sum(axis=1))


def attenuated(medium: Medium, how: Attenuation) -> tuple[Medium, Relaxing]:
    """Return the unrelaxed medium, and what of it relaxes.

    Raises
    ------
    WaveError
        Q is too low to be reached.
    """
    whole, shear = medium.lam.astype(np.float64) + 2.0 * medium.mu, medium.mu
    stiff, lost = [], []
    for modulus_, q in ((whole, how.qp), (shear, how.qs)):
        weight, factor, which = _fitted(q, how)
        if which.ndim == 1:
            which = which[:, None, None]
        unrelaxed = modulus_ * factor[which]
        stiff.append(unrelaxed)
        whose = np.broadcast_to(which, medium.mu.shape)
        lost.append(unrelaxed * _in_voxels(weight, whose))

    def pair(parts: list[Float]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        lam = parts[0] - 2.0 * parts[1]
        return lam.astype(np.float32), parts[1].astype(np.float32)

    return Medium(*pair(stiff), medium.rho), Relaxing(
        *pair(lost), times(how.band)[ORDER]
    )


def _fitted(q: Float, how: Attenuation) -> tuple[Float, Float, Int]:
    """Weights for quality factors.

    Returns
    -------
    (n, 8) of the different ones, (n,) unrelaxed moduli over those of the speeds, and
    the number of each entry of q, of its shape.
    """
    values, where = np.unique(q, return_inverse=True)
    found = np.array([weights(float(value), how.band) for value in values])
    at = np.array([2.0 * np.pi * how.reference])
    slowness = [1.0 / np.sqrt(modulus(at, one, how.band)[0]) for one in found]
    return found, np.real(slowness) ** 2, where.reshape(np.shape(q))


def _in_voxels(weight: Float, which: Int) -> Float:
    """Give each voxel the weight of its body, eight times; see `Relaxing`."""
    found = np.empty(which.shape)
    for kind in range(BODIES):
        i, j, k = kind & 1, kind >> 1 & 1, kind >> 2
        own = BODIES * weight[:, ORDER[kind]]
        found[k::2, j::2, i::2] = own[which[k::2, j::2, i::2]]
    return found
