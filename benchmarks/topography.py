"""A fault under a slope: the product's spec against a half-space that is tilted.

python benchmarks/topography.py OUT.json [SIZE_KM ...]

The top of a homogeneous box is an inclined plane, so that motion of the ground is that
of a half-space (Okada 1985, Bull. Seismol. Soc. Am. 75, 1135-1154), turned by the angle
of the slope; the fault is where the mesh puts it. The baseline is the same spec without
topography: what leaving the slope out would cost.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from afterslip.frame import Frame
from afterslip.schemas.earth import Frame as FrameSpec
from afterslip.schemas.fault import Plane
from afterslip.spec.coverage import plane_fault
from afterslip_common.record import Record, device_name, document, record
from afterslip_solver.reference.okada import Rectangles, surface_displacement
from afterslip_workers.engines.viscoelastic.forward import run_forward

SLOPE, HALF, DEPTH = 0.12, 70.0, 70.0
PLANE = {"x": 0, "y": 0, "top": 3, "strike": 0, "dip": 40, "length": 12, "width": 8}
SLIP = {"strike": 0.5, "dip": 1.0}


def spec(size: float, points: list[list[float]], heights: str | None) -> dict[str, Any]:
    """Return a forward spec."""
    model: dict[str, Any] = {
        "domain": {"x": [-HALF, HALF], "y": [-HALF, HALF], "depth": DEPTH},
        "layers": [
            {"name": "rock", "bottom": DEPTH, "vp": 6.0, "vs": 3.4641, "rho": 2700}
        ],
        "faults": [{"name": "main", "plane": PLANE}],
        "mesh": {"size": {"fault": size, "far": 30, "growth": 0.2 * size}},
    }
    if heights is not None:
        model["topography"] = heights
    return {
        "name": "fault under a slope",
        "model": model,
        "slip": [{"fault": "main", **SLIP}],
        "points": points,
    }


def exact(
    xy: np.ndarray, plane: Any = None, depth: float = DEPTH, rock: float = 0.25
) -> np.ndarray:
    """(n, 3) m, motion of the slope at places on the map, m.

    Parameters
    ----------
    plane : of the spec, with a strike of 0. depth : km, of the domain. rock : Poisson's
        ratio.
    """
    own = Plane(**(plane or PLANE))
    plane = plane_fault("main", own, Frame.of(FrameSpec(kind="local")))
    strike, updip, _ = plane.axes
    top = plane.origin + 0.5 * plane.length * strike
    edges = np.array([top, top - plane.width * updip])
    edges[:, 2] += SLOPE * edges[:, 0] * (1.0 + edges[:, 2] / (depth * 1e3))
    angle = np.arctan(SLOPE)
    axes = np.array(
        [
            [np.cos(angle), 0.0, np.sin(angle)],
            [0.0, 1.0, 0.0],
            [-np.sin(angle), 0.0, np.cos(angle)],
        ]
    )
    (x, y, z), lower = edges @ axes.T
    width = float(np.hypot(lower[0] - x, lower[2] - z))
    dip = float(np.degrees(np.arctan2(z - lower[2], lower[0] - x)))
    fault = Rectangles(x, y, -z, 0.0, dip, plane.length, width)
    ground = np.column_stack([xy[:, 0] / np.cos(angle), xy[:, 1]])
    slip = (SLIP["strike"], SLIP["dip"], 0.0)
    return np.asarray(surface_displacement(ground, fault, slip, rock) @ axes)


def measure(size: float) -> list[Record]:
    """Return the errors of one size of elements."""
    steps = np.arange(-18.0, 18.1, 2.0)
    xy = np.array([[x, y] for x in steps for y in steps])
    wanted = exact(xy * 1e3)
    largest = np.linalg.norm(wanted, axis=1).max()
    errors, made = {}, {}
    with tempfile.TemporaryDirectory(prefix="afterslip-slope-") as folder:
        side = np.linspace(-HALF, HALF, 21)
        rows = [f"{x:g},{y:g},{SLOPE * x:g}" for x in side for y in side]
        path = "slope.csv"
        (Path(folder) / path).write_text(
            "\n".join(["x_km,y_km,height_km", *rows]) + "\n"
        )
        begin = time.perf_counter()
        for name, heights in (("slope", path), ("flat", None)):
            found = run_forward(spec(size, xy.tolist(), heights), base=folder)
            difference = np.linalg.norm(found.displacement.values[0] - wanted, axis=1)
            rms = np.sqrt(
                (difference**2).mean() / (np.linalg.norm(wanted) ** 2 / len(xy))
            )
            errors[name] = float(difference.max() / largest), float(rms)
            made[name] = found
    found = made["slope"]
    estimate = float(np.abs(found.space_error.values).max() / largest)
    unknowns, seconds = found.attrs["n_unknowns"], time.perf_counter() - begin
    note = (
        f"{unknowns} unknowns, {seconds:.0f} s with the baseline, which leaves the "
        f"slope out; estimated {estimate:.4f}"
    )
    return [
        record(f"topography_{what}_error_{size:g}_km", mine, "1", without, note)
        for what, mine, without in zip(
            ("largest", "rms"), errors["slope"], errors["flat"], strict=True
        )
    ]


def main() -> None:
    """Print a table and write the record."""
    sizes = [float(size) for size in sys.argv[2:]] or [2.0, 1.0]
    made = [item for size in sizes for item in measure(size)]
    for item in made:
        print(f"{item['metric']:34s} {item['value']:.4f}  flat {item['baseline']:.4f}")
        print(f"  {item['note']}")
    text = json.dumps(document(made, device_name()), indent=1)
    Path(sys.argv[1]).write_text(text + "\n")


if __name__ == "__main__":
    main()
