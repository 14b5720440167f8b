"""Fit the coarse control grid of the plate interface and print its misfit to Slab2.

    AFTERSLIP_DATA=... python examples/tohoku2011/fit_interface.py [--write]

The model's surface is flat, the sea floor is not: at the trench it lies 7.5 km deep.
Depths are therefore counted from the solid surface, ``z = z_slab2 - water(z_slab2)``,
and the interface meets the model's surface at the trench axis.
"""

import argparse
import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyproj import Geod
from scipy.interpolate import LSQBivariateSpline, RectBivariateSpline

HERE = Path(__file__).parent
GEOD = Geod(ellps="WGS84")
ORIGIN = (142.4, 38.3)
STRIKE = 200.0  # deg, mean strike of the trench; the interface dips to its right

# Trench axis, (lat, lon), known to about 10 km: Slab2's up-dip edge moved seaward by up
# to 0.1 degrees, so that borehole C0019 (Chester et al. 2013) lies 5 km landward of the
# fitted axis, and smoothed through 36-36.5 N.
TRENCH = (
    (34.7, 142.05),
    (35.3, 142.33),
    (36.0, 142.68),
    (36.5, 143.08),
    (37.0, 143.50),
    (37.5, 143.80),
    (38.0, 144.04),
    (38.5, 144.11),
    (39.0, 144.18),
    (39.5, 144.26),
    (40.0, 144.29),
    (40.5, 144.44),
    (41.0, 144.77),
    (41.4, 145.20),
)
ROWS_KM = (0.0, 4.0, 9.0, 15.0, 22.0, 30.0, 40.0, 52.0, 65.0, 90.0, 125.0, 170.0)
COLUMNS = 14
SLIP_TO_KM = 58.0
SLIP_LATITUDES = (35.4, 40.4)  # where the trench leaves the part that may slip


@dataclass(frozen=True)
class Points:
    """Points of the interface in oblique coordinates, all km, depth positive down."""

    along: np.ndarray
    down: np.ndarray
    depth: np.ndarray
    sigma: np.ndarray


def to_oblique(lon: np.ndarray, lat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances along STRIKE and down dip (km) from ORIGIN."""
    start = np.broadcast_to(ORIGIN[0], lon.shape), np.broadcast_to(ORIGIN[1], lon.shape)
    azimuth, _, distance = GEOD.inv(*start, lon, lat)
    angle = np.radians(azimuth - STRIKE)
    return distance / 1e3 * np.cos(angle), distance / 1e3 * np.sin(angle)


def to_geographic(along: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverse of `to_oblique`."""
    azimuth = STRIKE + np.degrees(np.arctan2(down, along))
    start = np.full_like(along, ORIGIN[0]), np.full_like(along, ORIGIN[1])
    lon, lat, _ = GEOD.fwd(*start, azimuth, np.hypot(along, down) * 1e3)
    return lon, lat


def water_km(slab_depth: np.ndarray) -> np.ndarray:
    """Depth of the sea floor above an interface at ``slab_depth`` below sea level.

    7.5 km at the trench; 2.7, 1.7 and 0.6 km above 17.7, 21.6 and 30.3 km of depth,
    where the sea floor is at 2.3 (KAMN), 1.7 (MYGI) and 1.1 km (MYGW).
    """
    return 7.5 * np.exp(-np.maximum(slab_depth - 8.9, 0.0) / 8.5)


def read_slab(folder: Path) -> Points:
    """Slab2's points that the grid can describe; depths below the solid surface."""
    table = np.genfromtxt(
        folder / "slab2_japan" / "japan_trench_slab2.csv", delimiter=",", names=True
    )
    along, down = to_oblique(table["lon"], table["lat"])
    depth = table["depth_km"] - water_km(table["depth_km"])
    edge, _ = to_oblique(*(np.array(TRENCH)[[0, -1], ::-1].T))
    inside = (along < edge[0]) & (along > edge[-1]) & (depth < ROWS_KM[-1])
    return Points(
        along[inside],
        down[inside],
        depth[inside],
        table["depth_uncertainty_km"][inside],
    )


def control_grid(slab: Points) -> tuple[np.ndarray, np.ndarray]:
    """Distances ``along`` (n,) and ``down`` (n, len(ROWS_KM)) of the control points.

    Down-dip distance is fitted as a smooth function of (along, depth): it stays
    single-valued where the interface steepens, and it extrapolates well.
    """
    lat, lon = np.array(TRENCH).T
    dense = np.linspace(lat[0], lat[-1], 200)
    trench_s, trench_d = to_oblique(np.interp(dense, lat, lon), dense)
    fit = (slab.depth > 8.0) & (slab.depth < 180.0)
    # up dip of 20 km Slab2 is 2-6 km too deep for the trench, and its sigma is larger
    spread = np.interp(slab.depth[fit], [8.0, 16.0, 26.0], [150.0, 40.0, 4.0])
    spline = LSQBivariateSpline(
        np.concatenate([slab.along[fit], trench_s]),
        np.concatenate([slab.depth[fit], np.zeros_like(trench_s)]),
        np.concatenate([slab.down[fit], trench_d]),
        np.linspace(trench_s.min(), trench_s.max(), 8)[1:-1],
        [32.0, 65.0, 105.0],
        w=np.concatenate([1.0 / spread, np.full_like(trench_s, 2.0)]),
    )
    along = np.linspace(trench_s.min(), trench_s.max(), COLUMNS)
    return along, spline(along, ROWS_KM)


def outline(along: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitudes and latitudes of the polygon around the part that may slip."""
    lat, lon = np.array(TRENCH).T
    ends, _ = to_oblique(np.interp(SLIP_LATITUDES, lat, lon), np.array(SLIP_LATITUDES))
    s = np.linspace(ends[1], ends[0], 9)
    surface = RectBivariateSpline(along, ROWS_KM, down)
    # the seaward side is the trench, so that slip reaches it
    edge = np.concatenate(
        [surface(s, ROWS_KM[:1])[:, 0], surface(s, [SLIP_TO_KM])[::-1, 0]]
    )
    return to_geographic(np.concatenate([s, s[::-1]]), edge)


def misfit(slab: Points, along: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Depth of the grid minus that of Slab2 (km) at Slab2's points."""
    surface = RectBivariateSpline(along, ROWS_KM, down)
    depths = np.linspace(ROWS_KM[0], ROWS_KM[-1], 700)
    fitted = [
        np.interp(d, surface(s, depths)[0], depths)
        for s, d in zip(slab.along, slab.down, strict=True)
    ]
    return np.array(fitted) - slab.depth


def write(name: str, header: str, columns: tuple[np.ndarray, ...]) -> None:
    """Write columns rounded to 10 m."""
    with (HERE / name).open("w", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(header.split(","))
        rows = zip(*(c.ravel() for c in columns), strict=True)
        out.writerows(
            [f"{value:.4f}".rstrip("0").rstrip(".") for value in row] for row in rows
        )


def main() -> None:
    """Print the misfit by depth; with --write also replace the two files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the CSV files")
    arguments = parser.parse_args()
    folder = os.environ.get("AFTERSLIP_DATA")
    if not folder:
        parser.exit(2, "set AFTERSLIP_DATA to the folder that holds slab2_japan/\n")
    slab = read_slab(Path(folder))
    along, down = control_grid(slab)
    difference = misfit(slab, along, down)
    print("depth km   points  mean   rms   max |difference|  Slab2's own sigma, km")
    for low, high in (
        (0, 5),
        (5, 10),
        (10, 15),
        (15, 25),
        (25, 58),
        (58, 100),
        (100, 165),
    ):
        here = (slab.depth >= low) & (slab.depth < high)
        e = difference[here]
        print(
            f"{low:3d}-{high:3d}  {here.sum():7d} {e.mean():6.2f} "
            f"{np.sqrt(np.mean(e**2)):5.2f} {np.abs(e).max():6.2f}"
            f" {slab.sigma[here].mean():16.1f}"
        )
    if arguments.write:
        lon, lat = to_geographic(np.repeat(along[:, None], len(ROWS_KM), axis=1), down)
        depth = np.broadcast_to(ROWS_KM, lon.shape)
        write("interface.csv", "lon,lat,depth_km", (lon.T, lat.T, depth.T))
        write("outline.csv", "lon,lat", outline(along, down))


if __name__ == "__main__":
    main()
