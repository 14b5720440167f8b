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


def layered_shear(
    times: Float,
    slip: float,
    elastic: tuple[float, float],
    maxwell: tuple[float, float, float],
) -> tuple[Float, Float]:
    """Shear strains of two layers held at both far ends, with a jump in between.

    The jump ``slip`` (upper minus lower side) lies in the Maxwell layer or at its
    edge. The stress is uniform and decays with the rate
    (H_v / eta) / (H_e / mu_e + H_v / mu_v).

    Parameters
    ----------
    times : s. slip : m.
    elastic : thickness (m), mu (Pa). maxwell : thickness (m), mu (Pa), viscosity.

    Returns
    -------
    Engineering shear strain of the elastic and of the Maxwell layer, per time.
    """
    height_e, mu_e = elastic
    height_v, mu_v, viscosity = maxwell
    compliance = height_e / mu_e + height_v / mu_v
    rate = height_v / viscosity / compliance
    upper = -slip / compliance / mu_e * np.exp(-np.asarray(times) * rate)
    return np.asarray(upper), np.asarray((-slip - height_e * upper) / height_v)


def layered_opening(
    times: Float,
    slip: float,
    elastic: tuple[float, float, float],
    maxwell: tuple[float, float, float, float],
) -> tuple[Float, Float]:
    """Axial strains of two layers held at both far ends and at their sides.

    The jump ``slip`` opens the Maxwell layer. With e its axial strain and c the
    deviatoric creep along the axis, c' = mu/eta (2/3 e - c), and the stress
    (lam + 2 mu) e - 2 mu c equals that of the elastic layer: one exponential.

    Parameters
    ----------
    times : s. slip : m.
    elastic : thickness (m), lam, mu (Pa).
    maxwell : thickness (m), lam, mu (Pa), viscosity (Pa s).

    Returns
    -------
    Axial strain of the elastic and of the Maxwell layer, per time.
    """
    height_e, lam_e, mu_e = elastic
    height_v, lam_v, mu_v, viscosity = maxwell
    stiff = (lam_e + 2.0 * mu_e) / height_e
    total = lam_v + 2.0 * mu_v + stiff * height_v
    # e = a + b c, so c' = mu/eta (2/3 a - (1 - 2/3 b) c)
    a, b = -stiff * slip / total, 2.0 * mu_v / total
    rate = mu_v / viscosity * (1.0 - 2.0 / 3.0 * b)
    limit = 2.0 / 3.0 * a / (1.0 - 2.0 / 3.0 * b)
    lower = a + b * limit * (1.0 - np.exp(-np.asarray(times) * rate))
    return np.asarray((-slip - height_v * lower) / height_e), np.asarray(lower)
