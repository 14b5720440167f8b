"""Slip of earthquakes that are known, from data of an earth that is not the model's.

    python examples/synthetic/study.py --out DIR [--draws 200] [--json FILE]

The earthquakes happen in truth.yaml and are inverted with inversion.yaml: other
layers, another viscosity, a coarser mesh, other unit sources. Each has slip of its own,
a von Karman field of random correlation lengths, of which the part below a random level
is zero, scaled to a random magnitude. The stations of stations.csv give the coseismic
displacement and that of a year with random errors and a translation of the network. All
else is the default of an inversion with positive dip slip. The Green's functions are
solved once; DIR keeps them.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from afterslip import Campaign, Client
from afterslip.earths import perturbed
from afterslip_common.geometry import bspline_spacing
from afterslip_common.record import Record, device_name, document, record
from afterslip_solver.inversion import (
    InversionProblem,
    InversionSettings,
    invert,
    limits,
    magnitude_of,
    offset_columns,
    rigidity_in,
)
from afterslip_solver.inversion.regularisers import SourceGrid, VonKarman
from afterslip_solver.model import Float, Int
from afterslip_solver.sources.profile import bspline_profile, taper_profile

HERE = Path(__file__).parent
LENGTH, WIDTH = 120e3, 60e3
CELLS = (40, 20)  # on which slip of both kinds of sources is compared
BLOCKS = (8, 4)  # of 15 by 15 km, less than the distance of the stations
NAMES = ("truth", "inversion")
TIMES = ["0 d", "1 yr"]
# m, horizontal and vertical: on land and on the sea floor, at once and after a year
ERRORS = {"L": ((0.004, 0.010), (0.005, 0.012)), "S": ((0.03, 0.05), (0.04, 0.06))}
TRANSLATION = 0.005  # m, of the network's reference, in each component and epoch
VARIANTS = {"one earth": False, "and other earths": True}
# changes of inversion.yaml, each about a standard deviation; alternatives share it
CHANGES = {
    "layers.crust.bottom": ("20", "40"),
    "layers.mantle.rheology.maxwell.viscosity": ("x3", "/3"),
    "layers.crust.rigidity": ("x0.8", "x1.2"),
    "layers.mantle.rigidity": ("x0.8",),
}
SHARES = (0.68, 0.95)


@dataclass(frozen=True)
class Greens:
    """Responses of the stations in one of the two earths.

    Attributes
    ----------
    response : (n_source, n_time, n_station, 3) m per m.
    component, patch : (n_source,), (n_source, 2).
    rigidity : (n_source,) Pa.
    stations : (n_station,) names. position : (n_station, 2) m.
    """

    response: Float
    component: Int
    patch: Int
    rigidity: Float
    area: Float
    stations: np.ndarray
    position: Float

    @cached_property
    def count(self) -> tuple[int, int]:
        """Sources along strike and down dip."""
        first, second = self.patch.max(axis=0) + 1
        return int(first), int(second)

    @cached_property
    def values(self) -> Float:
        """(n_source, n, m) slip at the cells of a unit of each source."""
        middles = [
            (np.arange(n) + 0.5) * size / n
            for n, size in zip(CELLS, (LENGTH, WIDTH), strict=True)
        ]
        shapes = []
        for axis, (x, size) in enumerate(zip(middles, (LENGTH, WIDTH), strict=True)):
            n = self.count[axis]
            if n in CELLS or 2 * n in CELLS:
                shapes.append([(x * n // size == i).astype(float) for i in range(n)])
            else:
                ends = ("free", "free")
                shapes.append([bspline_profile(x, size, n, i, ends) for i in range(n)])
        return np.array([np.outer(shapes[0][i], shapes[1][j]) for i, j in self.patch])

    def slip(self, coefficients: Float) -> Float:
        """(k, 2, n, m) m, strike and dip slip at the cells."""
        parts = [
            np.tensordot(coefficients[:, mine], self.values[mine], axes=1)
            for mine in (self.component == 0, self.component == 1)
        ]
        return np.stack(parts, axis=1)

    def moment(self, coefficients: Float, rigidity: Float) -> Float:
        """(k,) N m, length of the sum of the moments of a fault that is plane."""
        size = rigidity * self.area * coefficients
        return np.hypot(*(size[:, self.component == c].sum(axis=1) for c in (0, 1)))


def solve(folder: Path) -> None:
    """Solve both campaigns, or take them up, and keep the stations' responses."""
    with Client.embedded(folder / "service") as client:
        specs = {n: Campaign.from_yaml(HERE / f"{n}.yaml") for n in NAMES}
        for path, values in CHANGES.items():
            made = perturbed(specs["inversion"], f"{path}={','.join(values)}")
            specs |= dict(zip(names_of(path, values), made, strict=True))
        for name, spec in specs.items():
            keep(client, folder, name, spec)


def keep(client: Client, folder: Path, name: str, spec: Campaign) -> None:
    """Solve a campaign and keep the stations' responses."""
    campaign = client.submit(spec).wait(progress=True)
    greens = campaign.greens()
    rows = np.genfromtxt(HERE / "stations.csv", str, delimiter=",")[1:]
    np.savez(
        folder / f"{name}.npz",
        response=campaign.sample(HERE / "stations.csv", TIMES).values,
        component=greens["source_component"].values.astype(np.int64),
        patch=greens["source_patch"].values.astype(np.int64),
        rigidity=greens["source_rigidity"].values,
        area=greens["source_area"].values,
        stations=rows[:, 0],
        position=1e3 * rows[:, 1:].astype(np.float64),
    )


def names_of(path: str, values: tuple[str, ...]) -> list[str]:
    """Names of files of a change."""
    return [f"{path} {value}".replace("/", "by") for value in values]


def with_other_earths(
    folder: Path, model: Greens, problem: InversionProblem
) -> InversionProblem:
    """Return the problem with what the other earths change."""
    changes, rigidity = [], []
    for path, values in CHANGES.items():
        for name in names_of(path, values):
            other, share = read(folder, name), len(values) ** -0.5
            change = (other.response - model.response).reshape(len(model.patch), -1)
            changes.append(share * change.T)
            rigidity.append(share * (other.rigidity - model.rigidity))
    return replace(
        problem, changes=np.stack(changes), rigidity_changes=np.stack(rigidity)
    )


def read(folder: Path, name: str) -> Greens:
    """Read what `solve` has written."""
    with np.load(folder / f"{name}.npz") as stored:
        return Greens(**{key: stored[key] for key in stored})


def random_slip(greens: Greens, rng: np.random.Generator) -> Float:
    """(n_source,) m, slip of one rake that is zero on a part of the fault."""
    n, m = greens.count
    grid = greens.patch[greens.component == 0]
    place = np.column_stack([np.zeros((len(grid), 2), dtype=np.int64), grid])
    lengths = {"along_km": rng.uniform(20, 60), "down_km": rng.uniform(12, 30)}
    spacing = np.array([[LENGTH / n, WIDTH / m]])
    sources = SourceGrid(place, spacing, np.array([False]))
    root = np.linalg.cholesky(VonKarman(**lengths).precision(sources))
    field = np.linalg.solve(root.T, rng.standard_normal(len(grid)))
    field -= np.quantile(field, rng.uniform(0.3, 0.7))
    middle = (grid + 0.5) * spacing
    ends = taper_profile(middle[:, 0], LENGTH, 0.15, open_start=False)
    field = np.maximum(field, 0.0) * ends
    field *= taper_profile(middle[:, 1], WIDTH, 0.15, open_start=True)
    rake = np.deg2rad(rng.uniform(75.0, 105.0))
    slip = np.empty(len(greens.patch))
    for component, part in enumerate((np.cos(rake), np.sin(rake))):
        slip[greens.component == component] = part * field
    wanted = 10.0 ** (1.5 * rng.uniform(7.2, 7.8) + 9.1)
    return slip * wanted / greens.moment(slip[None, :], greens.rigidity)[0]


def problem_of(
    truth: Greens, model: Greens, slip: Float, seed: int
) -> InversionProblem:
    """Pose the inversion of data with errors."""
    rng = np.random.default_rng(seed)
    exact = np.tensordot(slip, truth.response, axes=1)
    n_time, n_station, _ = exact.shape
    sigma = np.array(
        [
            [ERRORS[name[0]][when][c] for name in truth.stations for c in (0, 0, 1)]
            for when in range(n_time)
        ]
    ).reshape(exact.shape)
    data = exact + sigma * rng.standard_normal(exact.shape)
    data += TRANSLATION * rng.standard_normal((n_time, 1, 3))
    dataset = np.repeat(np.arange(n_time), 3 * n_station)
    component = np.tile([0, 1, 2], n_time * n_station)
    size, count = (LENGTH, WIDTH), model.count
    free = ("free", "free")
    spacing = [bspline_spacing(a, n, free) for a, n in zip(size, count, strict=True)]
    fault = np.zeros((len(model.patch), 1), dtype=np.int64)
    return InversionProblem(
        G=model.response.reshape(len(model.patch), -1).T,
        data=data.ravel(),
        sigma=sigma.ravel(),
        station=np.tile(np.repeat(np.arange(n_station), 3), n_time),
        kind=np.tile(np.repeat([name[0] for name in truth.stations], 3), n_time),
        grid=np.hstack([fault, model.component[:, None], model.patch]),
        area=model.area,
        rigidity=model.rigidity,
        sign=(model.component == 1).astype(np.int64),
        spacing=np.array([spacing]),
        open_top=np.array([False]),
        position=model.position,
        nuisance=offset_columns(dataset, component),
        dataset=dataset,
    )


def quantities(
    greens: Greens, coefficients: Float, rigidity: Float
) -> dict[str, Float]:
    """Return what is asked of k slips: Mw, potency, ..., (k,) or (k, n_block) each."""
    slip = greens.slip(coefficients)
    cell = LENGTH * WIDTH / np.prod(CELLS)
    total = slip.sum(axis=(2, 3))
    length = np.hypot(*total.T)
    along = np.einsum("kcij,kc->kij", slip, total / length[:, None])
    weight = along / along.sum(axis=(1, 2))[:, None, None]
    strike = (np.arange(CELLS[0]) + 0.5) * LENGTH / CELLS[0]
    dip = (np.arange(CELLS[1]) + 0.5) * WIDTH / CELLS[1]
    (n, m), (a, b) = CELLS, BLOCKS
    blocks = slip[:, 1].reshape(-1, a, n // a, b, m // b).mean(axis=(2, 4))
    return {
        "Mw": np.array(
            [magnitude_of(x) for x in greens.moment(coefficients, rigidity)]
        ),
        "potency, km³": length * cell / 1e9,
        "centroid along strike, km": weight.sum(axis=2) @ strike / 1e3,
        "centroid down dip, km": weight.sum(axis=1) @ dip / 1e3,
        "peak slip, m": np.hypot(slip[:, 0], slip[:, 1]).max(axis=(1, 2)),
        "slip of blocks, m": blocks.reshape(len(slip), -1),
    }


def trial(work: tuple[Path, bool, int]) -> dict[str, dict[str, Float]]:
    """Invert one earthquake: truth, estimate and intervals of each quantity."""
    folder, earths, seed = work
    truth, model = read(folder, "truth"), read(folder, "inversion")
    slip = random_slip(truth, np.random.default_rng((1, seed)))
    problem = problem_of(truth, model, slip, 10_000 + seed)
    if earths:
        problem = with_other_earths(folder, model, problem)
    out = invert(problem, InversionSettings(seed=seed, folds=0))
    found = out.posterior
    rigidity = rigidity_in(problem, found.earth)
    exact = quantities(truth, slip[None, :], truth.rigidity)
    free = quantities(model, found.free, rigidity)
    within = quantities(model, found.slip, rigidity)
    # as in a result: slips end at their bounds, and the largest lies within them
    free["slip of blocks, m"] = np.maximum(free["slip of blocks, m"], 0.0)
    free["peak slip, m"] = within["peak slip, m"]
    best = quantities(model, out.slip[None, :], model.rigidity)
    return {
        name: {
            "truth": exact[name][0],
            "estimate": best[name][0],
            **{str(p): np.stack(limits(free[name], within[name], p)) for p in SHARES},
        }
        for name in exact
    }


def summary(found: list[dict[str, dict[str, Float]]], name: str) -> dict[str, float]:
    """Median error, its spread and how often the intervals hold the truth."""
    truth, estimate = (
        np.array([one[name][key] for one in found]) for key in ("truth", "estimate")
    )
    error = estimate - truth
    if name.startswith(("peak", "pot")):
        error /= truth
    said = {"bias": np.median(error), "spread": np.quantile(np.abs(error), 0.68)}
    for share in SHARES:
        low, high = np.moveaxis([one[name][str(share)] for one in found], 1, 0)
        said[f"{share:.0%}"] = np.mean((low <= truth) & (truth <= high))
    return {key: float(value) for key, value in said.items()}


def study(folder: Path, draws: int, jobs: int) -> tuple[list[Record], dict]:
    """Invert all and print the table."""
    # each process has a core: its linear algebra must not ask for all of them
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    records, all_found = [], {}
    print("| model | quantity | bias | error, 68 % below | in 68 % | in 95 % |")
    print("|---|---|---|---|---|---|")
    for variant, earths in VARIANTS.items():
        work = [(folder, earths, seed) for seed in range(draws)]
        begun = time.monotonic()
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            found = list(pool.map(trial, work, chunksize=4))
        all_found[variant], seconds = found, time.monotonic() - begun
        for name in found[0]:
            said = summary(found, name)
            relative_ = name.startswith(("peak", "pot"))
            form = "{:+.1%}" if relative_ else "{:+.3f}"
            print(
                f"| {variant} | {name.split(',')[0] if relative_ else name} "
                f"| {form.format(said['bias'])} | {form.format(said['spread'])[1:]} "
                f"| {said['68%']:.1%} | {said['95%']:.1%} |"
            )
            unit = "1" if relative_ or name == "Mw" else name.rpartition(", ")[2]
            note = f"{variant}; {draws} earthquakes"
            head = f"synthetic {name.split(',')[0]}"
            records += [
                record(f"{head} {key}", said[key], unit, None, note)
                for key in ("bias", "spread")
            ]
            for share in SHARES:
                key = f"{share:.0%}"
                records.append(record(f"{head} in {key}", said[key], "1", share, note))
        note = f"errors {variant}; wall of {draws} inversions, {jobs} at once"
        records.append(record("synthetic_inversions_s", seconds, "s", 900.0, note))
    return records, all_found


def draw(folder: Path, found: dict, path: Path) -> None:
    """Show one earthquake, and all magnitudes and peaks with their intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    axes = figure.subplots(2, 2)
    truth, model = read(folder, "truth"), read(folder, "inversion")
    slip = random_slip(truth, np.random.default_rng((1, 0)))
    problem = problem_of(truth, model, slip, 10_000)
    out = invert(problem, InversionSettings(seed=0))
    pairs = [(truth, slip, "true slip of the first earthquake"),
             (model, out.slip, "its estimate")]  # fmt: skip
    fields = [np.hypot(*g.slip(a[None, :])[0]) for g, a, _ in pairs]
    most = max(field.max() for field in fields)
    for ax, field, (_, _, title) in zip(axes[0], fields, pairs, strict=True):
        image = ax.imshow(field.T, extent=(0, 120, 60, 0), vmin=0, vmax=most,
                          cmap="magma_r")  # fmt: skip
        ax.set(title=title, xlabel="along strike (km)", ylabel="down dip (km)")
    figure.colorbar(image, ax=axes[0], label="slip (m)")
    trials = found["and other earths"]
    for ax, name in zip(axes[1], ("Mw", "peak slip, m"), strict=True):
        exact = np.array([one[name]["truth"] for one in trials])
        best = np.array([one[name]["estimate"] for one in trials])
        low, high = np.array([one[name]["0.95"] for one in trials]).T
        ax.vlines(exact, low, high, color="#3b5bab", alpha=0.35, lw=1)
        ax.plot(exact, best, ".", color="#111", markersize=3)
        ax.plot(*[[exact.min(), exact.max()]] * 2, color="#b33", lw=1)
        ax.set(xlabel=f"true {name}", ylabel="estimate, 95 % interval")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Solve, invert, and write records and figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("synthetic-out"))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--solved", action="store_true", help="DIR has the responses")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    if not options.solved:
        solve(options.out)
    solved = time.monotonic() - begun
    records, found = study(options.out, options.draws, options.jobs)
    if not options.solved:
        note = "Green's functions of all earths"
        records.append(record("synthetic_solves_s", solved, "s", None, note))
    draw(options.out, found, options.out / "synthetic.png")
    print(f"solves {solved:.0f} s; wrote {options.out / 'synthetic.png'}")
    if options.json:
        content = json.dumps(document(records, device_name()), indent=1)
        options.json.write_text(content + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
