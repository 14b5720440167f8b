"""A made-up result of realistic size and shape, to try figures and report on.

Nothing in it was computed by a model of the Earth: a smooth slip on a curved thrust
near a trench, and displacements that point to it and fade with distance.
"""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from numpy.typing import NDArray

Float = NDArray[np.float64]

LON0, LAT0 = 142.4, 38.3
KM_PER_DEGREE = 111.195
RIGIDITY = 4.0e10
STRIKE = np.radians(201.0)


def _geographic(x: Float, y: Float) -> tuple[Float, Float]:
    lat = LAT0 + y / 1e3 / KM_PER_DEGREE
    return LON0 + x / 1e3 / (KM_PER_DEGREE * np.cos(np.radians(lat))), lat


def _fault(n_along: int, n_down: int) -> dict[str, Float]:
    """Lay out an interface 440 km long that steepens from 6 to 27 degrees."""
    along, down = np.meshgrid(
        np.linspace(0.0, 440e3, n_along), np.linspace(0.0, 210e3, n_down), indexing="ij"
    )
    dip = np.radians(6.0 + 21.0 * down / 210e3)
    # integrals of cos and sin of the dip along the way down
    rate = np.radians(21.0) / 210e3
    run = (np.sin(dip) - np.sin(np.radians(6.0))) / rate
    depth = (np.cos(np.radians(6.0)) - np.cos(dip)) / rate + 6e3
    way = np.array([np.sin(STRIKE), np.cos(STRIKE)])
    right = np.array([np.cos(STRIKE), -np.sin(STRIKE)])
    bend = 26e3 * np.cos((along - 220e3) / 440e3 * np.pi) - 10e3
    x = 150e3 + (along - 220e3) * way[0] + (run - bend) * right[0]
    y = -20e3 + (along - 220e3) * way[1] + (run - bend) * right[1]
    one = np.ones(along.size)
    strike = np.column_stack([way[0] * one, way[1] * one, 0.0 * one])
    flat = dip.ravel()
    updip = np.column_stack(
        [-np.cos(flat) * right[0], -np.cos(flat) * right[1], np.sin(flat)]
    )
    return {
        "x": x.ravel(),
        "y": y.ravel(),
        "z": -depth.ravel(),
        "along": along.ravel(),
        "down": down.ravel(),
        "strike": strike,
        "updip": updip,
    }


def _grid_triangles(n_along: int, n_down: int) -> NDArray[np.int64]:
    number = np.arange(n_along * n_down).reshape(n_along, n_down)
    a, b = number[:-1, :-1].ravel(), number[1:, :-1].ravel()
    c, d = number[1:, 1:].ravel(), number[:-1, 1:].ravel()
    return np.concatenate([np.column_stack([a, b, c]), np.column_stack([a, c, d])])


def _slip(along: Float, down: Float) -> Float:
    """(n, 2) m: one large patch near the trench, a lesser one down dip."""
    size = 36.0 * np.exp(
        -(((along - 205e3) / 85e3) ** 2) - ((down - 38e3) / 58e3) ** 2
    ) + 9.0 * np.exp(-(((along - 300e3) / 55e3) ** 2) - ((down - 120e3) / 45e3) ** 2)
    rake = np.radians(88.0 + 14.0 * (along - 220e3) / 220e3)
    taper = np.clip((210e3 - down) / 60e3, 0.0, 1.0)
    return np.column_stack([size * taper * np.cos(rake), size * taper * np.sin(rake)])


def _stations(rng: np.random.Generator) -> tuple[Float, Float, list[str], list[str]]:
    lat = np.linspace(35.4, 41.2, 32)
    coast = 141.0 + 0.9 * np.exp(-(((lat - 38.9) / 1.4) ** 2))
    lon = coast - rng.uniform(0.05, 1.6, lat.size) * (np.arange(lat.size) % 3 > 0)
    sea = np.array(
        [[142.92, 38.08], [143.26, 38.64], [142.75, 37.81], [142.67, 36.73],
         [142.08, 38.90], [142.43, 37.35], [143.50, 38.20], [143.00, 39.20]]
    )  # fmt: skip
    lons, lats = np.append(lon, sea[:, 0]), np.append(lat, sea[:, 1])
    x = (lons - LON0) * KM_PER_DEGREE * 1e3 * np.cos(np.radians(lats))
    y = (lats - LAT0) * KM_PER_DEGREE * 1e3
    names = [f"J{i:03d}" for i in range(32)]
    names += ["MYGI", "MYGW", "FUKU", "CHOS", "KAMN", "KAMS", "P09", "TJT1"]
    kinds = ["gnss"] * 32 + ["gnssa"] * 6 + ["obp"] * 2
    return x, y, names, kinds


def _displacement(x: Float, y: Float) -> Float:
    """(n_station, 3) m: towards the slip, fading with distance."""
    to_east, to_north = 160e3 - x, -15e3 - y
    away = np.hypot(to_east, to_north)
    size = 27.0 / (1.0 + (away / 95e3) ** 2.6)
    fall = -1.2 * np.exp(-(((away - 150e3) / 70e3) ** 2))
    rise = 5.5 * np.exp(-((away / 65e3) ** 2))
    return np.column_stack(
        [size * to_east / away, size * to_north / away - 0.06 * size, fall + rise]
    )


def _observations(
    truth: Float, kinds: list[str], rng: np.random.Generator
) -> dict[str, tuple[str, object]]:
    error = {
        "gnss": (0.02, 0.02, 0.05),
        "gnssa": (0.35, 0.35, 0.6),
        "obp": (np.nan, np.nan, 0.25),
    }
    rows = [
        (s, c, kind, error[kind][c])
        for s, kind in enumerate(kinds)
        for c in range(3)
        if np.isfinite(error[kind][c])
    ]
    station = np.array([r[0] for r in rows])
    component = np.array([r[1] for r in rows])
    sigma = np.array([r[3] for r in rows])
    predicted = truth[station, component]
    slack = 1.15 * sigma + 0.015 * np.abs(predicted)
    observed = predicted + slack * rng.standard_normal(sigma.size)
    kind = np.array([r[2] for r in rows])
    return {
        "observed": ("obs", observed),
        "predicted": ("obs", predicted),
        "sigma": ("obs", sigma),
        "residual": ("obs", observed - predicted),
        "obs_station": ("obs", station),
        "obs_component": ("obs", component),
        "obs_type": ("obs", kind),
        "obs_dataset": ("obs", np.where(kind == "gnss", "gnss", "seafloor")),
        "obs_epoch": ("obs", np.zeros(sigma.size)),
    }


def _series(time: Float, elastic: Float, x: Float) -> Float:
    """(n_time, n_station, 3) m: seaward on land, landward near the trench."""
    growth = 1.0 - np.exp(-time / 3.2)
    sign = np.where(x > 60e3, -0.16, 0.22)
    shape = elastic * sign[:, None] * np.array([1.0, 0.8, -0.6])
    return np.asarray(elastic + growth[:, None, None] * shape)


def _choice(rng: np.random.Generator) -> dict[str, tuple[str, Float]]:
    lam, mu = np.meshgrid(np.logspace(-3, 3, 9), [0.0, 0.03, 0.3], indexing="ij")
    bowl = 2.6 + 0.55 * (np.log10(lam) - 0.2) ** 2
    score = bowl + 0.5 * np.sqrt(mu) * (np.log10(lam) + 3.2) / 4.0 - 0.25 * (mu == 0.03)
    score = score + 0.06 * rng.standard_normal(score.shape)
    return {
        "cv_smoothness": ("cv_point", lam.ravel()),
        "cv_sparsity": ("cv_point", mu.ravel()),
        "cv_score": ("cv_point", score.ravel()),
        "cv_score_se": ("cv_point", 0.08 * score.ravel() + 0.12),
    }


def _sources(fault: dict[str, Float], x: Float, y: Float) -> dict[str, object]:
    """Lay out a grid of 12 by 6 unit sources of both components."""
    keep = np.arange(fault["x"].size)
    i, j = np.meshgrid(np.arange(12), np.arange(6), indexing="ij")
    along, down = (i.ravel() + 0.5) / 12 * 440e3, (j.ravel() + 0.5) / 6 * 210e3
    near = [
        keep[np.argmin((fault["along"] - a) ** 2 + (fault["down"] - d) ** 2)]
        for a, d in zip(along, down, strict=True)
    ]
    place = np.column_stack([fault[c][near] for c in "xyz"])
    away = np.min(np.hypot(place[:, :1] - x, place[:, 1:2] - y), axis=1)
    resolved = np.exp(-away / 70e3) * 0.9
    area = np.full(144, 440e3 * 210e3 / 72)
    both = np.repeat(np.arange(72), 2)
    return {
        "slip": ("source", _slip(along, down)[both, np.tile([0, 1], 72)]),
        "slip_sigma": ("source", np.repeat(0.4 + 5.0 * (1.0 - resolved), 2)),
        "resolution": ("source", np.column_stack([0.8 * resolved, resolved]).ravel()),
        "source_fault": ("source", np.zeros(144, dtype=np.int8)),
        "source_component": ("source", np.tile(np.array([0, 1], dtype=np.int8), 72)),
        "source_patch": (
            ("source", "pair"),
            np.column_stack([i.ravel(), j.ravel()])[both],
        ),
        "source_position": (("source", "xyz"), place[both]),
        "source_area": ("source", area),
        "source_rigidity": ("source", np.full(144, RIGIDITY)),
    }


def _attributes(slip: Float, fault: dict[str, Float], area: float) -> dict[str, object]:
    size = np.hypot(*slip.T)
    most = int(np.argmax(size))
    moment = RIGIDITY * area * float(size.mean())
    model = {
        "n_unknowns": 68412,
        "n_elements": 16310,
        "n_node": 22804,
        "quality": {"gamma_min": 0.21, "gamma_mean": 0.78, "aspect_max": 4.6},
    }
    spec = {
        "name": "example",
        "model": {"frame": {"kind": "geographic", "lon0": LON0, "lat0": LAT0}},
        "sources": {"fault": "main", "along_strike": 12, "down_dip": 6},
        "times": {"until": "10 yr"},
    }
    return {
        "campaign": "made-up",
        "campaign_name": "example",
        "inversion": "coseismic",
        "moment": moment,
        "magnitude": 2.0 / 3.0 * (np.log10(moment) - 9.1),
        "peak_slip": float(size[most]),
        "peak_slip_x": float(fault["x"][most]),
        "peak_slip_y": float(fault["y"][most]),
        "peak_slip_depth": -float(fault["z"][most]),
        "smoothness": float(np.logspace(-3, 3, 9)[4]),
        "sparsity": 0.03,
        "score": 2.4,
        "score_se": 0.31,
        "folds": 5,
        "frame": json.dumps(spec["model"]),
        "spec": json.dumps(spec),
        "request": json.dumps({"smoothness": "auto", "sparsity": "auto", "folds": 5}),
        "model": json.dumps(model),
        "digest": "sha256:" + "0" * 64,
        "versions": json.dumps({"afterslip": "0.1.0", "numpy": np.__version__}),
        "solver": json.dumps({"residual": 8.1e-9, "time_error": 4.0e-7,
                              "integrator": "spectral", "solves": 432}),
        "warnings": json.dumps(["A made-up result: no model of the Earth was run."]),
    }  # fmt: skip


def example_result(
    seed: int = 7, *, geographic: bool = True, n_along: int = 56, n_down: int = 28
) -> xr.Dataset:
    """Make up the result of a thrust earthquake observed by 40 stations.

    Parameters
    ----------
    seed : of the noise and of the stations' places.
    geographic : with longitudes and latitudes; else only local coordinates.
    n_along, n_down : nodes of the fault.

    Returns
    -------
    xr.Dataset laid out as ``docs/files.md`` says.
    """
    rng = np.random.default_rng(seed)
    fault = _fault(n_along, n_down)
    slip = _slip(fault["along"], fault["down"])
    x, y, names, kinds = _stations(rng)
    elastic = _displacement(x, y)
    time = np.append(0.0, np.geomspace(0.02, 10.0, 47))
    variables: dict[str, object] = {
        **_sources(fault, x, y),
        **_observations(elastic, kinds, rng),
        **_choice(rng),
        "fault_slip": (("fault_node", "slip_component"), slip),
        "fault_strike": (("fault_node", "component"), fault["strike"]),
        "fault_updip": (("fault_node", "component"), fault["updip"]),
        "fault_index": ("fault_node", np.zeros(len(slip), dtype=np.int8)),
        "fault_triangles": (
            ("fault_triangle", "corner"),
            _grid_triangles(n_along, n_down),
        ),
        "fault_length": ("fault", np.array([440e3])),
        "fault_width": ("fault", np.array([210e3])),
        "station_x": ("station", x),
        "station_y": ("station", y),
        "series": (("time", "station", "component"), _series(time, elastic, x)),
    }
    for name in ("x", "y", "z", "along", "down"):
        variables[f"fault_{name}"] = ("fault_node", fault[name])
    if geographic:
        for place, px, py in (
            ("fault", fault["x"], fault["y"]),
            ("station", x, y),
        ):
            dim = "fault_node" if place == "fault" else "station"
            lon, lat = _geographic(px, py)
            variables[f"{place}_lon"], variables[f"{place}_lat"] = (
                (dim, lon),
                (dim, lat),
            )
    coords = {
        "station": names,
        "time": time,
        "component": ["east", "north", "up"],
        "slip_component": ["strike", "dip"],
    }
    attrs = _attributes(slip, fault, 440e3 * 210e3)
    result = xr.Dataset(variables, coords, attrs)
    misfit = float(np.sum((result.residual / result.sigma) ** 2))
    power = float(np.sum((result.observed / result.sigma) ** 2))
    result.attrs["variance_reduction"] = 1.0 - misfit / power
    return result


def two_solutions(result: xr.Dataset) -> xr.Dataset:
    """Add a second data set, of the same data and 1 m more."""
    more = result.assign(observed=result["observed"] + 1.0)
    per_datum = [name for name in result if "obs" in result[name].dims]
    both = xr.concat([result[per_datum], more[per_datum]], "obs")
    names = np.repeat(["first", "second"], result.sizes["obs"])
    rest = result.drop_vars(per_datum)
    return rest.merge(both).assign(obs_dataset=("obs", names.astype(object)))
