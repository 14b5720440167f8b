"""Make the data of the example, or compare what was found with what made them.

    python examples/kinematic/study.py data DIR     # writes the tables of this folder
    python examples/kinematic/study.py compare DIR  # DIR of afterslip run … --out DIR

The truth is a rupture at 2.6 km/s on patches of half the size, with slip that grows for
4 s, in the far half of the fault for 8 s. ``compare`` exits with 1 where Mw is off by
more than 0.05, the centroid by more than 4 km, or the rupture time of a patch with more
than a third of the largest slip by more than a window.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import xarray as xr
import yaml

from afterslip import Campaign, Client
from afterslip.frame import Frame
from afterslip.result import open_result
from afterslip.schemas.windows import Hypocentre
from afterslip.spec.rupture import position_of
from afterslip_common.source_time import smooth_step

HERE = Path(__file__).parent
SPEED, RISE = 2.6e3, 4.0
SEED = 11
HIGH_RATE, STRONG = slice(0, 8), slice(4, 12)
# m, m/s: one standard deviation, horizontal and vertical
NOISE = {
    "static": (0.002, 0.004),
    "high_rate": (0.006, 0.012),
    "strong_motion": (0.002, 0.002),
}


def truth(sources: xr.Dataset, hypocentre: np.ndarray) -> tuple[np.ndarray, ...]:
    """Slip (n_source,), m; begin (n_source,), s; and how many steps of 2 s it takes."""
    place = sources["source_position"].values
    patch = sources["source_patch"].values
    along = (patch[:, 0] + 0.5) / (patch[:, 0].max() + 1)
    down = (patch[:, 1] + 0.5) / (patch[:, 1].max() + 1)
    near = np.exp(-(((along - 0.3) / 0.16) ** 2) - ((down - 0.55) / 0.35) ** 2)
    far = np.exp(-(((along - 0.72) / 0.14) ** 2) - ((down - 0.4) / 0.35) ** 2)
    slip = 1.6 * near + 2.2 * far
    slip[(slip < 0.15) | (sources["source_component"].values != 1)] = 0.0
    begin = np.linalg.norm(place - hypocentre, axis=1) / SPEED
    long = (along > 0.55) & (along < 0.9)
    return slip, begin, np.where(long, 3, 1)


def share(begin: np.ndarray, steps: np.ndarray, time: float) -> np.ndarray:
    """(n_source,) share of slip that is done: equal windows, 2 s apart."""
    grow, done = smooth_step(RISE), np.zeros(len(begin))
    for k in range(int(steps.max())):
        done += np.where(k < steps, grow(time - begin - 2.0 * k) / steps, 0.0)
    return done


def motion(greens: xr.Dataset, name: str, hypocentre: np.ndarray) -> np.ndarray:
    """(n_station, 3, n_sample) m or m/s, of the truth."""
    slip, begin, steps = truth(greens, hypocentre)
    time, series = greens["sample"].values, greens[name].values.astype(float)
    moved = np.zeros(series.shape[1:])
    for k in np.flatnonzero(slip):
        for step in range(steps[k]):
            late = time - begin[k] - 2.0 * step
            for row in range(len(moved)):
                for axis in range(3):
                    part = np.interp(late, time, series[k, row, axis], left=0.0)
                    moved[row, axis] += slip[k] / steps[k] * part
    return moved


def table(file: Path, greens: xr.Dataset, which: slice, values: dict) -> None:
    """Write values (n_station, 3) by time, with noise of the file's name."""
    sigma = np.array(NOISE[file.stem])[[0, 0, 1]]
    rng = np.random.default_rng([SEED, len(file.stem)])
    names = greens["station"].values[which]
    x, y = (greens[f"station_{axis}"].values[which] / 1e3 for axis in "xy")
    with file.open("w", newline="") as stream:
        out = csv.writer(stream)
        motion = ("east", "north", "up", "sigma_e", "sigma_n", "sigma_u")
        out.writerow(["station", "x_km", "y_km", "time_s", *motion])
        for row, name in enumerate(names):
            for time, moved in values.items():
                noisy = moved[which][row] + sigma * rng.standard_normal(3)
                numbers = [f"{value:.5f}" for value in noisy]
                out.writerow([name, x[row], y[row], time, *numbers, *sigma])


def data(folder: Path) -> int:
    """Solve the waves of finer patches and write the data."""
    content = yaml.safe_load((HERE / "campaign.yaml").read_text())
    point = hypocentre_of(content)
    for key in ("datasets", "inversions"):
        content.pop(key)
    content["sources"] |= {"along_strike": 16, "down_dip": 8}
    with Client.embedded(folder) as client:
        campaign = client.submit(Campaign.from_dict(content, HERE)).wait()
        greens = campaign.greens().load()
    slip = truth(greens, point)[0]
    offset = np.tensordot(slip, greens["offset"].values, axes=1)
    table(HERE / "static.csv", greens, slice(None), {0.0: offset})
    for name, variable, which, every in (
        ("high_rate", "displacement", HIGH_RATE, 2),
        ("strong_motion", "seismogram", STRONG, 1),
    ):
        moved = motion(greens, variable, point)
        times = greens["sample"].values
        values = {float(times[k]): moved[..., k] for k in range(0, len(times), every)}
        table(HERE / f"{name}.csv", greens, which, values)
    return 0


def hypocentre_of(content: dict) -> np.ndarray:
    """(3,) m."""
    asked = content["inversions"][0]["windows"]["hypocentre"]
    frame = Frame.of(Campaign.from_dict(content, HERE).model.frame)
    return position_of(Hypocentre(**asked), frame)


def compare(folder: Path) -> int:
    """Print what was found beside the truth; return 1 where it is off."""
    found = open_result(next(folder.rglob("result.nc")))
    content = yaml.safe_load((HERE / "campaign.yaml").read_text())
    content["sources"] |= {"along_strike": 8, "down_dip": 4}
    slip, begin, steps = truth(found, hypocentre_of(content))
    moment = found["source_rigidity"].values * found["source_area"].values * slip
    magnitude = 2.0 / 3.0 * (np.log10(moment.sum()) - 9.1)
    place = found["source_position"].values / 1e3
    exact = moment @ place / moment.sum()
    ours = np.array([found.attrs[f"centroid_{axis}"] / 1e3 for axis in "xyz"])
    times = np.arange(0.0, 40.0, 0.02)
    done = np.array([share(begin, steps, time) for time in times])
    tenth = times[np.argmax(done >= 0.1, axis=0)]
    late = found["rupture_time"].values - tenth
    strong = slip > slip.max() / 3.0
    print(f"Mw {found.attrs['magnitude']:.3f}, of the truth {magnitude:.3f}")
    print(f"centroid {np.round(ours, 1)} km, of the truth {np.round(exact, 1)}")
    print(f"rupture times later by {np.round(late[strong], 1)} s")
    away = float(np.linalg.norm(ours - exact))
    wrong = abs(found.attrs["magnitude"] - magnitude) > 0.05 or away > 4.0
    return int(wrong or not (np.abs(late[strong]) < 2.0).all())


if __name__ == "__main__":
    sys.exit({"data": data, "compare": compare}[sys.argv[1]](Path(sys.argv[2])))
