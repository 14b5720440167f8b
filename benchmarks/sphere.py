"""A small fault on a sphere: the product's spec against the exact homogeneous sphere.

python benchmarks/sphere.py OUT.json

Motion of the ground from 100 to 3000 km, for a model with ``frame.shape: sphere`` and
for the same one without, each compared with the point dislocation in a homogeneous
sphere (`afterslip_solver.reference.sphere`). The sides of the box hold its far end; the
exact sphere is free, and turned and moved as a rigid body so that it fits best.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from afterslip.frame import Frame
from afterslip.schemas.earth import Frame as FrameSpec
from afterslip.schemas.fault import Plane
from afterslip.spec.coverage import plane_fault
from afterslip_common.record import Record, device_name, document, record
from afterslip_common.sphere import EARTH_RADIUS, carried_axes, onto_sphere
from afterslip_solver.reference.sphere import PointSource
from afterslip_workers.engines.viscoelastic.forward import run_forward

DISTANCES = (100.0, 200.0, 400.0, 700.0, 1000.0, 1500.0, 2000.0, 3000.0)
AZIMUTHS = 12
VP, VS, RHO = 6.0, 3.5, 3000.0
PLANE = {
    "x": 0,
    "y": 0,
    "depth": 50,
    "strike": 25,
    "dip": 35,
    "length": 20,
    "width": 20,
}
SLIP = {"strike": 1.0, "dip": 2.0}


def spec(shape: str, growth: float, points: list[list[float]]) -> dict[str, Any]:
    """Return a forward spec."""
    return {
        "name": f"small fault, {shape}",
        "model": {
            "frame": {"kind": "geographic", "lon0": 140, "lat0": 38, "shape": shape},
            "domain": {"x": [-8000, 8000], "y": [-8000, 8000], "depth": 4000},
            "layers": [
                {"name": "rock", "bottom": 4000, "vp": VP, "vs": VS, "rho": RHO}
            ],
            "faults": [{"name": "main", "plane": PLANE}],
            "mesh": {"size": {"fault": 5, "far": 700, "growth": growth}},
            "boundary": {"sides": "fixed", "bottom": "fixed"},
        },
        "slip": [{"fault": "main", **SLIP}],
        "points": points,
        "solver": {"space_error": False},
    }


def exact(points: np.ndarray, moment: float) -> np.ndarray:
    """(n, 3) m, along the plane's carried axes, of the fault cut into 3 x 3 points."""
    mu = RHO * (VS * 1e3) ** 2
    lam = RHO * (VP * 1e3) ** 2 - 2.0 * mu
    frame = Frame.of(FrameSpec(kind="geographic", lon0=140, lat0=38, shape="sphere"))
    plane = plane_fault("main", Plane(**PLANE), frame)
    strike, updip, normal = plane.axes
    slip = SLIP["strike"] * strike + SLIP["dip"] * updip
    slip /= np.linalg.norm(slip)
    tensor = moment * (np.outer(slip, normal) + np.outer(normal, slip))
    node, weight = np.polynomial.legendre.leggauss(3)
    places = onto_sphere(np.column_stack([points, 0 * points[:, 0]]), EARTH_RADIUS)
    centre = np.array([0.0, 0.0, -EARTH_RADIUS])
    up = (places - centre) / EARTH_RADIUS
    total = np.zeros((len(points), 3))
    for a, wa in zip(node, weight, strict=True):
        for d, wd in zip(node, weight, strict=True):
            at = plane.origin + 0.5 * plane.length * (1 + a) * strike
            at = at - 0.5 * plane.width * (1 + d) * updip
            axes = carried_axes(at[:1], at[1:2], EARTH_RADIUS)[0]
            cos = up @ axes[2]
            angle = np.arctan2(np.linalg.norm(np.cross(up, axes[2]), axis=1), cos)
            azimuth = np.arctan2(up @ axes[0], up @ axes[1])
            source = PointSource(EARTH_RADIUS, -at[2], lam, mu, tensor * wa * wd / 4)
            found = source.displacement(angle, azimuth)
            away = (cos[:, None] * up - axes[2]) / np.sin(angle)[:, None]
            right = np.cross(away, up)
            for k, vector in enumerate((up, away, right)):
                total += found[:, k : k + 1] * vector
    return total


def without_rigid_motion(wanted: np.ndarray, found: np.ndarray, places: np.ndarray,
                         weight: np.ndarray) -> tuple[np.ndarray, float]:  # fmt: skip
    """Return wanted plus the rigid motion that brings it nearest to found."""
    n = len(places)
    modes = np.zeros((n, 3, 6))
    modes[:, :, :3] = np.eye(3)
    for k in range(3):
        modes[:, :, 3 + k] = np.cross(np.eye(3)[k], places / EARTH_RADIUS)
    scaled = (modes * weight[:, None, None]).reshape(-1, 6)
    fit = np.linalg.lstsq(scaled, ((found - wanted) * weight[:, None]).ravel())[0]
    return wanted + modes @ fit, float(np.abs(modes @ fit).max())


def summary(shape: str, plane: np.ndarray, moved: np.ndarray, wanted: np.ndarray,
            attrs: dict[str, Any], seconds: float) -> dict[str, Any]:  # fmt: skip
    """Return errors by distance."""
    size = np.linalg.norm(wanted, axis=1).reshape(len(DISTANCES), -1)
    weight = np.repeat(1.0 / size.max(axis=1), AZIMUTHS)
    places = onto_sphere(np.column_stack([plane, 0 * plane[:, 0]]), EARTH_RADIUS)
    shifted, rigid = without_rigid_motion(
        wanted, moved, places + np.array([0.0, 0.0, EARTH_RADIUS]), weight
    )
    if shape == "flat":
        shifted = wanted
    error = np.linalg.norm(moved - shifted, axis=1).reshape(len(DISTANCES), -1)
    raw = np.linalg.norm(moved - wanted, axis=1).reshape(len(DISTANCES), -1)
    return {
        "unknowns": int(attrs["n_unknowns"]),
        "seconds": round(seconds, 1),
        "moment": attrs["moment"],
        "largest_rigid_motion_m": rigid if shape == "sphere" else 0.0,
        "distance_km": list(DISTANCES),
        "largest_motion_m": size.max(axis=1).tolist(),
        "largest_error": (error.max(axis=1) / size.max(axis=1)).tolist(),
        "rms_error": (
            np.sqrt((error**2).mean(axis=1) / (size**2).mean(axis=1))
        ).tolist(),
        "rms_error_with_rigid_motion": (
            np.sqrt((raw**2).mean(axis=1) / (size**2).mean(axis=1))
        ).tolist(),
    }


def measure(growth: float) -> dict[str, Any]:
    """Return errors by distance of both shapes."""
    azimuth = np.radians(np.arange(AZIMUTHS) * 360.0 / AZIMUTHS + 7.0)
    xy = np.array([[r * np.sin(a), r * np.cos(a)] for r in DISTANCES for a in azimuth])
    rows: dict[str, Any] = {}
    for shape in ("sphere", "flat"):
        begin = time.perf_counter()
        found = run_forward(spec(shape, growth, xy.tolist()))
        seconds = time.perf_counter() - begin
        local = found.displacement.values[0]
        plane = xy * 1e3
        frame = Frame.of(
            FrameSpec(kind="geographic", lon0=140, lat0=38, shape="sphere")
        )
        axes = frame.axes(plane[:, 0], plane[:, 1])
        carried = carried_axes(plane[:, 0], plane[:, 1], EARTH_RADIUS)
        if shape == "sphere":
            wanted = exact(plane, found.attrs["moment"])
            moved = np.einsum("nac,na->nc", axes, local)
        else:
            # the same moment: the plane's fault is a little larger
            moved = np.einsum("nac,na->nc", carried, local)
            moved *= rows["sphere"]["moment"] / found.attrs["moment"]
        rows[shape] = summary(shape, plane, moved, wanted, found.attrs, seconds)
    return rows


def records(found: dict[str, Any]) -> list[Record]:
    """Return RMS errors by mesh and distance; the baseline is that of a flat Earth."""
    made = []
    for name, rows in found.items():
        sphere, flat = rows["sphere"], rows["flat"]
        note = f"{name}, {sphere['unknowns']} unknowns, {sphere['seconds']} s"
        for k, distance in enumerate(sphere["distance_km"]):
            metric = f"sphere_rms_error_{name}_{distance:g}_km"
            values = sphere["rms_error"][k], "1", flat["rms_error"][k]
            made.append(record(metric, *values, note=note))
    return made


def main() -> None:
    """Print a table and write the record."""
    growths = [float(growth) for growth in sys.argv[2:]] or [0.4, 0.25]
    found = {f"growth_{growth:g}": measure(growth) for growth in growths}
    made = records(found)
    for item in made:
        print(f"{item['metric']:45s} {item['value']:.4f}  flat {item['baseline']:.4f}")
    text = json.dumps(document(made, device_name()), indent=1)
    Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
