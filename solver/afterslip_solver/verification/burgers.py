"""Burgers bodies: layers against exact exponentials, bodies in three dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from afterslip_solver.model import SolverSettings
from afterslip_solver.verification import correspondence, relaxation
from afterslip_solver.verification.bodies import delayed_bodies, slip_lanes
from afterslip_solver.verification.check import Check, Part, Size, at_most

NAME = "burgers"
# a Kelvin element ten times faster than the dashpot, as after large earthquakes
KELVIN = (0.5 * relaxation.MU[1], 0.1 * relaxation.VISCOSITY)
TIGHT = SolverSettings(
    times=tuple(relaxation.TIMES),
    until=float(relaxation.TIMES[-1]),
    tolerance=1e-10,
    time_tolerance=1e-9,
)
REFERENCE = "two exponentials of an elastic and a Burgers layer in series"


def run(size: Size) -> Iterator[Check]:
    """Sheared layers by every integrator, then bodies in the Laplace domain."""
    for part in PARTS.values():
        yield from part(size)


def _spectral(size: Size) -> Iterator[Check]:
    """Shear two layers, the same for both sizes."""
    del size
    for scheme in ("polynomial", "shift_invert"):
        settings = replace(TIGHT, scheme=scheme)
        yield at_most(
            NAME,
            f"shear of two layers to 6 relaxation times, {scheme}, largest error of "
            "all nodes relative to the slip",
            relaxation.layer_error("shear", settings, KELVIN),
            1e-7,
            REFERENCE,
            "two decaying modes: only the linear solver's 1e-10 remains",
        )


def _stepping(size: Size) -> Iterator[Check]:
    finest = 64 if size == "small" else 256

    def error(n: int) -> float:
        settings = relaxation.stepping(TIGHT, relaxation.TAU / n)
        return relaxation.layer_error("shear", settings, KELVIN, relaxation.EARLY)

    yield from relaxation.second_order(
        (NAME, REFERENCE),
        "shear",
        finest,
        error,
        2e-4 * (64.0 / finest) ** 2,
        "(dt rate)^2/24 of what relaxes, with the Kelvin element's faster rate",
    )


def _bodies(size: Size) -> Iterator[Check]:
    model = delayed_bodies(size)
    error, _, _ = correspondence.transform_error(model, slip_lanes(model))
    yield at_most(
        NAME,
        "transform of the curve at 3 / relaxation time, relative to the relaxation",
        error,
        1e-6,
        "elastic solve with mu(p) of Burgers and Maxwell bodies that the fault cuts",
        correspondence.NOTE,
    )


PARTS: dict[str, Part] = {
    "spectral": _spectral,
    "stepping": _stepping,
    "bodies": _bodies,
}
