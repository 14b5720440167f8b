"""Write the plate interface and the stations of the example.

    python examples/nankai/geometry.py

An analytic surface, not a model of the slab: it has the strike of the Nankai Trough,
bends along it as the trough does between Shikoku and Kii, and steepens from 4 degrees
at the trough to about 20 at 50 km depth.
"""

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pyproj import Geod

HERE = Path(__file__).parent
GEOD = Geod(ellps="WGS84")
MIDDLE = (135.6, 32.45)  # of the trough's axis, degrees east and north
AZIMUTH = 64.0  # degrees, of the trough; the plate dips to the left of it
HALF = 300.0  # km, half the length that may slip
REACH = (5.0, 165.0)  # km from the axis, of the part that may slip
DEEPEST = 260.0  # km from the axis, of the interface


def axis(s: np.ndarray) -> np.ndarray:
    """Distance of the trough from a straight line, km, at s km along it."""
    return 18.0 * np.sin(2.0 * np.pi * s / 640.0)


def depth(d: np.ndarray) -> np.ndarray:
    """Depth of the interface, km, at a horizontal distance d km from the trough."""
    return 0.07 * d + 8.0e-4 * d**2


def to_geographic(s: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Degrees east and north of places along and landward of the trough, km."""
    across = axis(s) + d
    azimuth = AZIMUTH - np.degrees(np.arctan2(across, s))
    start = (np.full(np.shape(s), value) for value in MIDDLE)
    lon, lat, _ = GEOD.fwd(*start, azimuth, 1e3 * np.hypot(s, across))
    return lon, lat


def grid(s: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs, flat."""
    first, second = np.meshgrid(s, d, indexing="ij")
    return first.ravel(), second.ravel()


def stations() -> Iterable[tuple[str, float, float]]:
    """Sites like those of the paper's figure: land, GNSS-acoustic and pressure.

    GNSS stands every 25 km or so from 135 km landward of the trough; 16 acoustic
    sites between; pressure sensors in two dense networks and two lines.
    """
    rng = np.random.default_rng(20)
    s, d = grid(np.arange(-350.0, 351.0, 25.0), np.arange(135.0, 300.0, 25.0))
    keep = rng.uniform(size=len(s)) < 0.75
    yield from named("G", s[keep], d[keep], rng.uniform(-8, 8, (2, keep.sum())))
    s, d = grid(np.linspace(-270.0, 270.0, 8), np.array([40.0, 90.0]))
    yield from named("A", s, d, rng.uniform(-12, 12, (2, len(s))))
    parts = (
        grid(np.linspace(40.0, 110.0, 5), np.array([25.0, 50.0, 75.0, 100.0])),
        grid(np.linspace(-80.0, 10.0, 6), np.array([20.0, 45.0, 70.0, 95.0])),
        grid(np.linspace(-260.0, -130.0, 6), np.array([30.0, 65.0])),
    )
    s, d = (np.concatenate(part) for part in zip(*parts, strict=True))
    yield from named("P", s, d, np.zeros((2, len(s))))


def named(
    letter: str, s: np.ndarray, d: np.ndarray, off: np.ndarray
) -> Iterable[tuple[str, float, float]]:
    """Sites with a name, moved by up to some km."""
    lon, lat = to_geographic(s + off[0], d + off[1])
    for number, place in enumerate(zip(lon.tolist(), lat.tolist(), strict=True)):
        yield f"{letter}{number:03d}", *place


def write(name: str, head: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Write a table."""
    with (HERE / name).open("w", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(head.split(","))
        for row in rows:
            out.writerow([f"{v:.4f}" if isinstance(v, float) else v for v in row])


def main() -> None:
    """Write the three tables."""
    s, d = grid(
        np.linspace(-HALF - 90.0, HALF + 90.0, 15),
        np.array([0, 10, 25, 45, 70, 100, 130, 160, 195, DEEPEST]),
    )
    lon, lat = to_geographic(s, d)
    write("interface.csv", "lon,lat,depth_km", zip(lon, lat, depth(d), strict=True))
    side = np.linspace(-HALF, HALF, 13)
    edge = np.concatenate([side, side[::-1]])
    reach = np.repeat(REACH, len(side))
    lon, lat = to_geographic(edge, reach)
    write("outline.csv", "lon,lat", zip(lon, lat, strict=True))
    write("stations.csv", "station,lon,lat", stations())


if __name__ == "__main__":
    main()
