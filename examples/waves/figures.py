"""Draw what the example found: a record section, and offsets against Okada's.

    python examples/waves/figures.py DIR

DIR is the folder of ``afterslip run examples/waves/campaign.yaml --out DIR``. One metre
of reverse slip on the whole fault is made of the unit sources. Exits with 1 where the
offsets are farther from Okada's half-space than 6 % of the largest.
"""

import sys
from pathlib import Path

import numpy as np

from afterslip import Campaign, plot
from afterslip.archive import open_greens
from afterslip_solver.reference.okada import Rectangles, surface_displacement

SPEC = Path(__file__).parent / "campaign.yaml"
# sides at 2.5 times the distance of the farthest station, voxels of 1.15 km
MOST = 0.06


def okada(spec: Campaign, points: np.ndarray) -> np.ndarray:
    """(n_station, 3) m, of one metre of reverse slip on the whole fault."""
    plane, rock = spec.model.faults[0].plane, spec.model.layers[0]
    rectangle = Rectangles(
        1e3 * plane.x, 1e3 * plane.y, 1e3 * plane.top, plane.strike, plane.dip,
        1e3 * plane.length, 1e3 * plane.width,
    )  # fmt: skip
    ratio = (rock.vp / rock.vs) ** 2
    poisson = (ratio - 2.0) / (2.0 * (ratio - 1.0))
    return surface_displacement(points, rectangle, [0.0, 1.0, 0.0], poisson)


def main(folder: Path) -> int:
    """Draw and compare; return 1 where offsets are off."""
    greens = open_greens(folder / "greens.zarr")
    slip = (greens["source_component"].values == 1).astype(float)
    for variable in ("displacement", "seismogram"):
        figure = plot.record_section(greens, slip, variable)
        print(plot.save(figure, folder / f"{variable}.png"))
    found = np.tensordot(slip, greens["offset"].values, axes=1)
    points = np.column_stack([greens["station_x"].values, greens["station_y"].values])
    exact = okada(Campaign.from_yaml(SPEC), points)
    print("station    offset of waves (mm)        Okada (mm)")
    for name, ours, theirs in zip(greens["station"].values, found, exact, strict=True):
        figures = " ".join(f"{1e3 * value:8.1f}" for value in (*ours, *theirs))
        print(f"{name!s:8s} {figures}")
    error = np.abs(found - exact).max() / np.abs(exact).max()
    print(f"largest difference: {100 * error:.1f} % of the largest offset")
    return int(error > MOST)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
