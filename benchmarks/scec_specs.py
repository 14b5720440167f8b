"""The SCEC/CIG strike-slip and reverse-slip benchmarks as forward specs.

Faults, slip and rock are those of `afterslip_solver.verification.scec`. A user cannot
hold sides of a box at the values of a half-space, so the fault is whole (the benchmark
has half of it beside a plane of symmetry), and the domain is left to the spec's
default. The independent answer: the elastic half-space by point forces (Mindlin 1936;
Okada 1992), and what relaxation adds by the propagator in wavenumber and frequency.
"""

from pathlib import Path

import numpy as np

from afterslip_common.geometry import PlaneFault
from afterslip_common.terms import YEAR
from afterslip_solver.reference import (
    PointSources,
    Stratum,
    interior_displacement,
    layered_displacement,
)
from afterslip_solver.verification.scec import LAYER, MU, REACH, VISCOSITY, taper

CASES = {"scec-strike-slip": 90.0, "scec-reverse": 45.0}
WORDS = {90.0: "SCEC strike-slip", 45.0: "SCEC reverse-slip"}
YEARS = [0.0, 1.0, 5.0, 10.0]
TABLE = "scec-{dip:g}.csv"
RHO = 2700.0
STRATA = [Stratum(LAYER, MU, MU), Stratum(float("inf"), MU, MU, VISCOSITY)]
# points are farther from the trace, km
CLEAR = 3.0


def plane(dip: float) -> dict[str, float]:
    """Top, dip, length and width of the fault, degrees and km."""
    width = REACH / np.sin(np.radians(dip)) / 1e3
    return {"top": 0.0, "dip": dip, "length": 2e-3 * REACH, "width": float(width)}


def places() -> list[list[float]]:
    """Points around the fault, km, as far as the benchmark's sides and farther."""
    x = [x for x in np.arange(-28.5, 44.0, 3.0) if abs(x) > CLEAR]
    return [[float(a), float(b)] for b in (0.0, 4.0, 9.0, 14.0, 19.0, 27.0) for a in x]


def write_slip(dip: float, folder: Path) -> None:
    """Write the slip as a table: whole to 12 km, nothing from 16 km on."""
    side = np.linspace(0.0, REACH, 33)
    axes = np.array(_plane(dip).axes[:2])
    lines = ["x_km,y_km,depth_km,strike,dip"]
    for y in np.concatenate([-side[:0:-1], side]):
        for depth in side:
            at = np.array([depth / np.tan(np.radians(dip)), y, depth]) / 1e3
            slip = taper(np.array(y), np.array(depth)) * axes @ _direction(dip)
            lines.append(",".join(f"{value:.6f}" for value in (*at, *slip)))
    (folder / TABLE.format(dip=dip)).write_text("\n".join(lines) + "\n")


def spec(dip: float) -> dict:
    """Return the forward spec but its mesh; `write_slip` writes its table."""
    speed = {"vp": (3.0 * MU / RHO) ** 0.5 / 1e3, "vs": (MU / RHO) ** 0.5 / 1e3}
    rock = speed | {"rho": RHO}
    flow = {"rheology": {"maxwell": {"viscosity": VISCOSITY}}}
    layers = [
        {"name": "lid", "bottom": LAYER / 1e3, **rock},
        {"name": "rest", "bottom": 500.0, **rock, **flow},
    ]
    here = {"x": 0, "y": 0, "strike": 0}
    return {
        "name": WORDS[dip],
        "model": {
            "frame": {"kind": "local"},
            "layers": layers,
            "faults": [{"name": "main", "plane": here | plane(dip)}],
        },
        "slip": {"file": TABLE.format(dip=dip)},
        "times": {"until": f"{YEARS[-1]:g} yr", "output": [f"{t} yr" for t in YEARS]},
        "points": places(),
    }


def reference(dip: float) -> np.ndarray:
    """(n_time, n_point, 3) m."""
    xy = 1e3 * np.array(places())
    there = np.column_stack([xy, np.zeros(len(xy))])
    fine = np.arange(0.0, REACH + 1.0, 500.0)
    elastic = interior_displacement(there, _sources(dip, fine, 4))
    # what flows is below 12 km: for it the slip is smooth in depth
    coarse = np.arange(0.0, REACH + 1.0, 2e3)
    moments = YEAR * np.array(YEARS)
    flow = layered_displacement(xy, _sources(dip, coarse, 4), STRATA, moments)
    return elastic + flow - flow[0]


def _plane(dip: float) -> PlaneFault:
    size = plane(dip)
    length, width = 1e3 * size["length"], 1e3 * size["width"]
    return PlaneFault("main", 0.0, 0.0, 0.0, 0.0, dip, length, width)


def _direction(dip: float) -> np.ndarray:
    """Right-lateral, or reverse, 1 m."""
    strike, updip, _ = _plane(dip).axes
    return -strike if dip == 90.0 else updip


def _sources(dip: float, edges: np.ndarray, order: int) -> PointSources:
    """Gauss points of cells with these edges in depth, and along strike."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = 0.5 * np.diff(edges)[:, None]
    depth = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    share = (half * weights).ravel()
    y = np.concatenate([-depth[::-1], depth])
    along = np.concatenate([share[::-1], share])
    yy, zz = np.meshgrid(y, depth, indexing="ij")
    area = np.outer(along, share / np.sin(np.radians(dip)))
    position = np.column_stack(
        [zz.ravel() / np.tan(np.radians(dip)), yy.ravel(), -zz.ravel()]
    )
    potency = (area * taper(yy, zz)).ravel()[:, None] * _direction(dip)
    normal = np.repeat(_plane(dip).axes[2][None], len(position), axis=0)
    return PointSources(position, potency, normal)
