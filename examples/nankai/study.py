"""Slip on the Nankai Trough from GNSS, GNSS-acoustic and pressure, after a paper.

    python examples/nankai/study.py --out DIR [--json FILE]
        [--size coarse|laptop|device]

The experiment of Murakami et al. (2023, ICCS, section 6): 186 unit sources of two
components on a curved interface, 30 days of flow at 2e18 Pa s, slip towards azimuth 125
degrees, data without errors, smoothness and sparsity by cross-validation. Beside it the
same with errors, and with the default of this package. Where there is no mesher:

    python examples/nankai/study.py --size device --keep-mesh nankai.npz   # elsewhere
    python examples/nankai/study.py --size device --mesh nankai.npz --out DIR
"""

import argparse
import csv
import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from afterslip import Campaign, Client, plot
from afterslip.client.campaign import CampaignHandle
from afterslip.client.inversion import Inversion
from afterslip.identity import model_digest
from afterslip.plot.style import SOFT, new_figure, styled
from afterslip.spec import parse_campaign
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_common.record import Record, device_name, document, record
from afterslip_solver.mesh import builder
from afterslip_solver.sources.profile import bspline_profile
from afterslip_workers.engines.models import get_or_build
from afterslip_workers.engines.viscoelastic import model_file
from afterslip_workers.engines.viscoelastic.building import build_model
from afterslip_workers.store.open import open_store

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1]))
from benchmarks.campaign import StoredMesh, keep_mesh  # noqa: E402

AZIMUTH = 125.0
MAGNITUDE = 8.11
FREE = ("free", "free")  # edges of the fault
DAYS = (0, 10, 20, 30)
# m, horizontal and vertical, of each kind of station
ERRORS = {"gnss": (0.003, 0.008), "gnssa": (0.03, 0.06), "obp": (np.nan, 0.02)}
KINDS = {"G": "gnss", "A": "gnssa", "P": "obp"}
# middle and width of two asperities in unit sources, along and down, and their size
ASPERITIES = ((12.0, 1.6, 4.5, 1.2, 1.0), (19.5, 2.4, 3.5, 1.2, 0.7))
PAPER = {"sparsity": "auto", "choice": "cross_validation"}
INVERSIONS: dict[str, tuple[str, dict]] = {
    "default, with errors": ("noisy", {}),
    "paper, with errors": ("noisy", PAPER),
    "default, no errors": ("clean", {}),
    "paper, no errors": ("clean", PAPER),
}
# other meshes than campaign.yaml's: edges of 4.4 km, halved twice, are 1.1 km on
# the fault; those of 30 km are longer than the distance of the unit sources
DEVICE = {"size": {"fault": 4.9, "far": 300, "growth": 0.6}, "refine": 2}
MESHES = {
    "device": DEVICE,
    "coarse": {"size": {"fault": 30, "far": 400, "growth": 0.8}},
}


def spec_of(size: str) -> Campaign:
    """Return the campaign at one of its sizes."""
    content = Campaign.from_yaml(HERE / "campaign.yaml").to_dict()
    if size in MESHES:
        content["model"]["mesh"] = MESHES[size]
    return Campaign.from_dict(content, HERE)


def true_slip(greens: xr.Dataset) -> np.ndarray:
    """(n_source,) m, of the hanging wall towards one azimuth and of Mw 8.11."""
    patch = greens["source_patch"].values
    component = greens["source_component"].values
    amount = np.zeros(len(patch))
    for along, down, wide, high, size in ASPERITIES:
        off = ((patch[:, 0] - along) / wide) ** 2 + ((patch[:, 1] - down) / high) ** 2
        amount += size * np.exp(-0.5 * off)
    # no slip where there is next to none, as in the paper's figure
    amount[amount < 0.05] = 0.0
    part = np.where(component == 0, *along_and_up(greens, patch))
    slip = amount * part
    size = greens["source_area"].values * greens["source_rigidity"].values * slip
    moment = np.hypot(*(size[component == c].sum() for c in (0, 1)))
    return slip * 10.0 ** (1.5 * MAGNITUDE + 9.1) / moment


def along_and_up(greens: xr.Dataset, patch: np.ndarray) -> tuple[np.ndarray, ...]:
    """Shares of strike and dip slip whose horizontal direction is the azimuth."""
    place = greens["source_position"].values[:, :2]
    strike = np.zeros((len(patch), 2))
    first = greens["source_component"].values == 0
    for k in range(len(patch)):
        row = first & (patch[:, 1] == patch[k, 1])
        near = np.abs(patch[:, 0] - patch[k, 0]) <= 1
        ends = place[row & near][np.argsort(patch[row & near, 0])][[0, -1]]
        strike[k] = ends[1] - ends[0]
    strike /= np.linalg.norm(strike, axis=1)[:, None]
    way = np.array([np.sin(np.deg2rad(AZIMUTH)), np.cos(np.deg2rad(AZIMUTH))])
    # a fault dips to the right of its strike, so up dip lies to the left
    updip = np.column_stack([-strike[:, 1], strike[:, 0]])
    return strike @ way, updip @ way


def write_data(
    campaign: CampaignHandle, slip: np.ndarray, path: Path, seed: int
) -> None:
    """Write the displacements of a slip at all stations; seed 0: without errors."""
    found = campaign.sample(HERE / "stations.csv", [f"{day} d" for day in DAYS])
    motion = np.tensordot(slip, found.values, axes=1)
    rng = np.random.default_rng(seed)
    with (HERE / "stations.csv").open() as stream, path.open("w") as out:
        stations = list(csv.DictReader(stream))
        out.write("station,lon,lat,east,north,up,sigma_e,sigma_n,sigma_u,type,time\n")
        for day, epoch in zip(DAYS, motion, strict=True):
            for station, moved in zip(stations, epoch, strict=True):
                kind = KINDS[station["station"][0]]
                horizontal, vertical = ERRORS[kind]
                sigma = np.array([horizontal, horizontal, vertical])
                value = moved + (sigma * rng.standard_normal(3) if seed else 0.0)
                fields = [
                    "" if np.isnan(s) else f"{v:.6f}"
                    for v, s in zip([*value, *sigma], [*sigma, *sigma], strict=True)
                ]
                place = [station[key] for key in ("station", "lon", "lat")]
                out.write(
                    ",".join([*place, *fields, kind, f"{day / 365.25:.6f}"]) + "\n"
                )


def line(name: str, inversion: Inversion, greens: xr.Dataset, slip: np.ndarray) -> dict:
    """Figures of an inversion beside the truth."""
    found = inversion.result
    size = greens["source_area"].values * greens["source_rigidity"].values
    component = greens["source_component"].values
    each = [np.hypot(*((size * a)[component == c] for c in (0, 1)))
            for a in (slip, found["slip"].values)]  # fmt: skip
    place = greens["source_position"].values[component == 0] / 1e3
    middle = [weight @ place / weight.sum() for weight in each]
    inside = np.nan
    if "slip_interval" in found:
        low, high = found["slip_interval"].values.T
        inside = float(np.mean((low <= slip) & (slip <= high)))
    return {
        "name": name,
        "mw": inversion.magnitude,
        "mw_interval": inversion.magnitude_interval,
        "peak": inversion.peak_slip,
        "peak_interval": inversion.peak_slip_interval,
        "centroid": float(np.linalg.norm((middle[1] - middle[0])[:2])),
        "correlation": float(np.corrcoef(slip, found["slip"].values)[0, 1]),
        "coverage": inside,
    }


def cells(row: dict) -> list[str]:
    """One line of the table."""

    def limits(pair, form: str) -> str:
        return f" ({pair[0]:{form}} to {pair[1]:{form}})" if pair else ""

    return [
        row["name"],
        f"{row['mw']:.2f}{limits(row['mw_interval'], '.2f')}",
        f"{row['peak']:.1f} m{limits(row['peak_interval'], '.1f')}",
        f"{row['centroid']:.0f} km",
        f"{row['correlation']:.2f}",
        "–" if np.isnan(row["coverage"]) else f"{row['coverage']:.0%}",
    ]


def solve(client: Client, spec: Campaign) -> tuple[CampaignHandle, list[Record]]:
    """Solve the Green's functions."""
    begun = time.monotonic()
    campaign = client.submit(spec).wait(progress=True)
    solved = time.monotonic() - begun
    unknowns = campaign.data["model"]["n_unknowns"]
    note = f"372 functions of {unknowns:,} unknowns, 30 days; with the model, if made"
    return campaign, [
        record("nankai_solves_s", solved, "s", None, note),
        record("nankai_unknowns", unknowns, "1", None, "degrees of freedom"),
    ]


def data_of(
    client: Client, campaign: CampaignHandle, slip: np.ndarray, out: Path
) -> dict[str, str]:
    """Names of the data without and with errors on the server."""
    names = {}
    known = [item["name"] for item in client.datasets()]
    for name, seed in (("clean", 0), ("noisy", 1)):
        write_data(campaign, slip, out / f"{name}.csv", seed)
        names[name] = f"{name}-{campaign.id[:8]}"
        if names[name] not in known:
            client.add_dataset(names[name], out / f"{name}.csv")
    return names


def study(
    out: Path, spec: Campaign, keep: Callable[[list[Record]], None]
) -> list[Record]:
    """Solve, invert four times, print the table and return records.

    Parameters
    ----------
    keep : called with all records so far, so that what is cut off has left some.
    """
    # one device solves group after group; processors share them
    workers = 1 if spec.to_dict()["model"]["mesh"] == DEVICE else None
    with Client.embedded(out, workers=workers) as client:
        campaign, records = solve(client, spec)
        keep(records)
        greens = campaign.greens()
        slip = true_slip(greens)
        names = data_of(client, campaign, slip, out)
        print(
            f"| truth | {MAGNITUDE} | {at_sources(slip, greens).max():.1f} m | | | |",
            flush=True,
        )
        found = {}
        for title, (data, options) in INVERSIONS.items():
            begun = time.monotonic()
            name = title.replace(", ", "-").replace(" ", "-")
            asked = {"name": name, "sign": {"dip": "positive"}, **options}
            inversion = campaign.invert([names[data]], **asked)
            row = line(title, inversion, greens, slip)
            row["seconds"] = time.monotonic() - begun
            records += records_of(row)
            keep(records)
            print(f"| {' | '.join(cells(row))} | in {row['seconds']:.0f} s", flush=True)
            found[title] = inversion.result
            inversion.save(out / name)
        plot.save(draw(found, greens, slip), out / "nankai.png")
    return records


def at_sources(slip: np.ndarray, greens: xr.Dataset) -> np.ndarray:
    """(n_patch,) m, slip at the middles of the unit sources, which overlap."""
    component, patch = (
        greens[f"source_{key}"].values for key in ("component", "patch")
    )
    count = patch.max(axis=0) + 1
    along, down = (
        np.array([bspline_profile(np.linspace(0.0, 1.0, n), 1.0, n, i, FREE)
                  for i in range(n)]) for n in count
    )  # fmt: skip
    parts = []
    for mine in (component == 0, component == 1):
        size = np.zeros(count)
        size[tuple(patch[mine].T)] = slip[mine]
        parts.append((along.T @ size @ down)[tuple(patch[component == 0].T)])
    return np.hypot(*parts)


def records_of(row: dict) -> list[Record]:
    """Return the records of a line of the table."""
    note = f"{row['name']}; truth Mw {MAGNITUDE}"
    made = [
        record("nankai_mw", row["mw"], "1", MAGNITUDE, note),
        record("nankai_peak", row["peak"], "m", None, note),
        record("nankai_centroid", row["centroid"], "km", None, note),
        record("nankai_invert_s", row["seconds"], "s", None, note),
    ]
    if not np.isnan(row["coverage"]):
        head = "nankai_coefficients_in_95"
        made.append(record(head, row["coverage"], "1", 0.95, note))
    return made


@styled
def draw(
    results: dict[str, xr.Dataset], greens: xr.Dataset, slip: np.ndarray
) -> Figure:
    """Draw the true slip and that of the inversions."""
    slips = {"true": slip} | {t: r["slip"].values for t, r in results.items()}
    first = greens["source_component"].values == 0
    place = greens["source_position"].values[first] / 1e3
    sizes = {title: at_sources(value, greens) for title, value in slips.items()}
    most = np.ceil(5 * max(size.max() for size in sizes.values())) / 5
    levels = np.arange(0.0, most + 0.1, 0.2)
    figure = new_figure(5.6)
    axes = figure.subplots(3, 2, sharex=True, sharey=True).ravel()
    (result, *_) = results.values()
    x, y = result["station_x"].values / 1e3, result["station_y"].values / 1e3
    for ax, (title, size) in zip(axes, sizes.items(), strict=False):
        image = ax.tricontourf(*place[:, :2].T, size, levels, cmap="magma_r")
        ax.plot(x, y, ".", color=SOFT, markersize=1.5)
        ax.set(title=title, aspect="equal", xlim=(-320, 350), ylim=(-260, 200))
    for ax in axes[:-1:2]:
        ax.set_ylabel("km north")
    for ax in axes[3:5]:
        ax.set_xlabel("km east")
        ax.tick_params(labelbottom=True)
    axes[-1].set_axis_off()
    figure.colorbar(image, ax=axes, label="slip (m)", shrink=0.6)
    return figure


def build_on(mesh: Path, spec: Campaign, out: Path) -> None:
    """Put the model of a mesh in a file into the store of the service."""
    StoredMesh.path = mesh
    builder.Mesher, builder.quiet_gmsh = StoredMesh, nullcontext
    parsed, files = parse_campaign(spec.to_dict(), HERE), LocalFiles(HERE)
    backend = open_store(out / "store")
    backend.prepare()
    digest = model_digest(parsed, files)
    inputs = resolve(parsed, files)
    get_or_build(
        backend,
        digest,
        model_file,
        lambda: build_model(parsed.model, inputs, files, print),
    )


def main() -> None:
    """Keep a mesh, or run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("nankai-out"))
    parser.add_argument("--size", choices=("laptop", *MESHES), default="laptop")
    parser.add_argument("--keep-mesh", type=Path)
    parser.add_argument("--mesh", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    spec = spec_of(options.size)
    if options.keep_mesh:
        keep_mesh(options.keep_mesh, spec, HERE)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    if options.mesh:
        begun = time.monotonic()
        build_on(options.mesh, spec, options.out)
        print(f"model in {time.monotonic() - begun:.0f} s", flush=True)

    def keep(records: list[Record]) -> None:
        if options.json:
            content = json.dumps(document(records, device_name()), indent=1)
            options.json.write_text(content + "\n", encoding="utf-8")

    begun = time.monotonic()
    records = study(options.out, spec, keep)
    seconds = time.monotonic() - begun
    print(f"{seconds:.0f} s in all; wrote {options.out / 'nankai.png'}")
    records.append(record("nankai_all_s", seconds, "s", 3600.0, f"size {options.size}"))
    keep(records)


if __name__ == "__main__":
    main()
