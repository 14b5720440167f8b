"""Closed forms of a Maxwell body: no inertia, bulk modulus elastic.

Each follows from mu -> mu s / (s + mu/eta) in the Laplace domain.
"""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import Float


def shear_stress(times: Float, strain: float, mu: float, viscosity: float) -> Float:
    """Shear stress after a step of engineering shear strain that is then held.

    Parameters
    ----------
    times : s. strain : gamma. mu : Pa. viscosity : Pa s.

    Returns
    -------
    Pa, ``mu * strain * exp(-t mu / viscosity)``.
    """
    return np.asarray(mu * strain * np.exp(-np.asarray(times) * mu / viscosity))


def confined_axial_stress(
    times: Float, strain: float, lam: float, mu: float, viscosity: float
) -> Float:
    """Axial stress after a step of axial strain, no lateral strain (Pa).

    The deviatoric part 4/3 mu decays with mu / viscosity, the bulk part stays.
    """
    bulk = lam + 2.0 * mu / 3.0
    decay = np.exp(-np.asarray(times) * mu / viscosity)
    return np.asarray((bulk + 4.0 / 3.0 * mu * decay) * strain)


def uniaxial_stress(
    times: Float, strain: float, lam: float, mu: float, viscosity: float
) -> Float:
    """Axial stress after a step of axial strain, no lateral stress (Pa).

    E(s) = 9 K mu(s) / (3 K + mu(s)) gives one exponential with the rate
    3 K / (3 K + mu) * mu / viscosity.
    """
    bulk = lam + 2.0 * mu / 3.0
    young = 9.0 * bulk * mu / (3.0 * bulk + mu)
    rate = 3.0 * bulk / (3.0 * bulk + mu) * mu / viscosity
    return np.asarray(young * strain * np.exp(-np.asarray(times) * rate))


def layered_shear_interface(
    times: Float,
    slip: float,
    elastic: tuple[float, float],
    maxwell: tuple[float, float, float],
) -> Float:
    """Motion of the interface of two sheared layers held at both far ends.

    The jump ``slip`` lies inside the Maxwell layer (upper side minus lower side),
    the elastic layer is above. The shear stress is uniform and decays with
    (H_v / eta) / (H_e / mu_e + H_v / mu_v); the interface is held by the elastic
    layer alone.

    Parameters
    ----------
    times : s. slip : m.
    elastic : thickness (m), mu (Pa). maxwell : thickness (m), mu (Pa), viscosity.

    Returns
    -------
    m, displacement of the interface in the direction of slip.
    """
    height_e, mu_e = elastic
    height_v, mu_v, viscosity = maxwell
    compliance = height_e / mu_e + height_v / mu_v
    rate = height_v / viscosity / compliance
    stress = -slip / compliance * np.exp(-np.asarray(times) * rate)
    return np.asarray(-stress * height_e / mu_e)
