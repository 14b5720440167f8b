"""Closed forms of a Burgers body: a Maxwell and a Kelvin element in series.

In the Laplace domain the shear compliance is
1/mu + 1/(viscosity s) + 1/(kelvin_modulus + kelvin_viscosity s).
"""

from __future__ import annotations

import numpy as np

from afterslip_solver.model import Float


def burgers_compliance(
    times: Float, mu: float, viscosity: float, kelvin: tuple[float, float]
) -> Float:
    """Engineering shear strain under a unit shear stress that is held, 1/Pa.

    Elastic strain, transient of the Kelvin element, and steady creep.

    Parameters
    ----------
    times : s. mu : Pa. viscosity : Pa s.
    kelvin : modulus (Pa) and viscosity (Pa s) of the Kelvin element.
    """
    times = np.asarray(times)
    transient = -np.expm1(-times * kelvin[0] / kelvin[1]) / kelvin[0]
    return np.asarray(1.0 / mu + times / viscosity + transient)


def burgers_shear_stress(
    times: Float,
    strain: float,
    mu: float,
    viscosity: float,
    kelvin: tuple[float, float],
) -> Float:
    """Shear stress (Pa) after a step of engineering shear strain that is then held.

    Two exponentials; parameters as of `burgers_compliance`.
    """
    return strain * _relaxation(times, 1.0 / mu, 1.0 / viscosity, 1.0, kelvin)


def layered_burgers_shear(
    times: Float,
    slip: float,
    elastic: tuple[float, float],
    burgers: tuple[float, float, float, float, float],
) -> tuple[Float, Float]:
    """Shear strains of two layers held at both far ends, with a jump in between.

    The jump ``slip`` (upper minus lower side) lies in the Burgers layer or at its
    edge. The stress is uniform and a sum of two exponentials.

    Parameters
    ----------
    times : s. slip : m.
    elastic : thickness (m), mu (Pa).
    burgers : thickness (m), mu (Pa), viscosity (Pa s), Kelvin modulus (Pa), Kelvin
        viscosity (Pa s).

    Returns
    -------
    Engineering shear strain of the elastic and of the Burgers layer, per time.
    """
    height_e, mu_e = elastic
    height_b, mu_b, viscosity, *kelvin = burgers
    stress = -slip * _relaxation(
        times,
        height_e / mu_e + height_b / mu_b,
        height_b / viscosity,
        height_b,
        (kelvin[0], kelvin[1]),
    )
    upper = stress / mu_e
    return np.asarray(upper), np.asarray((-slip - height_e * upper) / height_b)


def _relaxation(
    times: Float,
    spring: float,
    dashpot: float,
    delayed: float,
    kelvin: tuple[float, float],
) -> Float:
    """Inverse transform of 1 / (spring s + dashpot + delayed s / (k + n s))."""
    modulus, viscosity = kelvin
    # (k + n s) / (a s^2 + b s + c): both roots are real and negative
    a, c = spring * viscosity, dashpot * modulus
    b = spring * modulus + dashpot * viscosity + delayed
    fast = (-b - np.sqrt(b**2 - 4.0 * a * c)) / (2.0 * a)
    slow = c / (a * fast)
    times = np.asarray(times)
    return np.asarray(
        (
            (modulus + viscosity * slow) * np.exp(slow * times)
            - (modulus + viscosity * fast) * np.exp(fast * times)
        )
        / (a * (slow - fast))
    )
