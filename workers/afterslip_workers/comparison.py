"""``afterslip compare-rheologies``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from afterslip.cli.options import PAGE
from afterslip.errors import one_problem

if TYPE_CHECKING:
    import xarray as xr

    from afterslip_workers.tasks.posing import Posed

STORE = "store"  # of a folder that `afterslip run` has filled
FEW = 12  # lines of stations that are printed


def compare_rheologies(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN",
            help="Folders of `afterslip run --out`, which differ in their rheology.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for comparison.nc and .png.")
    ] = Path("comparison"),
    inversion: Annotated[
        str | None, typer.Option(help="Its name, where runs hold several.")
    ] = None,
) -> None:
    """Compare models of the earth by evidence, and by prediction of data held out."""
    from afterslip import plot
    from afterslip_workers.tasks.comparing import compare

    console = Console(stderr=True)
    results = [_result(run, inversion) for run in runs]
    names = _names(runs, results)
    prior = tuple(
        float(results[0].attrs.get(f"increment_{name}", default))
        for name, default in (("smoothness", 0.0), ("amplitude", 1.0))
    )
    with console.status("reading data") as status:
        posed = {
            name: _posed(run, result)
            for name, run, result in zip(names, runs, results, strict=True)
        }
        found = compare(posed, prior, status.update)
    out.mkdir(parents=True, exist_ok=True)
    found.to_netcdf(out / "comparison.nc", engine="h5netcdf")
    plot.save(plot.comparison(found), out / "comparison.png")
    page = Console()
    if not page.is_terminal:
        page.width = PAGE
    page.print(_table(found))
    largest = float(found.attrs["model_error_m"])
    if largest > 0.0:
        typer.echo(
            "the covariance holds the errors of the mesh, the same for all models: "
            f"up to {1e3 * largest:.2g} mm"
        )
    for line in sentences(found):
        typer.echo(line)
    typer.echo(f"wrote {out / 'comparison.nc'} and {out / 'comparison.png'}")


def _result(run: Path, inversion: str | None) -> xr.Dataset:
    from afterslip.result import open_result

    paths = sorted(run.glob("result.nc")) or sorted(run.glob("*/result.nc"))
    found = [open_result(path) for path in paths]
    known = [str(result.attrs["inversion"]) for result in found]
    if not known:
        hint = "name the folder of a finished `afterslip run --out`"
        raise one_problem("RUN", str(run), "holds no result", hint)
    if inversion is None and len(known) == 1:
        return found[0]
    if inversion not in known:
        hint = f"choose one of {', '.join(known)}"
        raise one_problem("--inversion", inversion, f"is not in {run}", hint)
    return found[known.index(inversion)]


def _names(runs: list[Path], results: list[xr.Dataset]) -> list[str]:
    """Names of the campaigns, or of their folders where those are the same."""
    names = [str(result.attrs["campaign_name"]) for result in results]
    if len(set(names)) < len(names):
        names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        hint = "give the campaigns different names"
        raise one_problem("RUN", names, "have the same name", hint)
    return names


def _posed(run: Path, result: xr.Dataset) -> Posed:
    from afterslip_workers.store import uploads
    from afterslip_workers.store.open import open_store
    from afterslip_workers.tasks.posing import pose

    if not (run / STORE).is_dir():
        hint = "name the folder of `afterslip run`, not one that was fetched"
        raise one_problem("RUN", str(run), "has no store", hint)
    backend = open_store(run / STORE)
    return pose(
        backend,
        uploads.files_of(backend),
        str(result.attrs["campaign"]),
        json.loads(result.attrs["spec"]),
        json.loads(result.attrs["request"]),
        lambda _phase: None,
    )


def _table(found: xr.Dataset) -> Table:
    table = Table(title="Models, by the evidence of the data")
    for heading in (
        "model", "log evidence", "probability", "held-out score",
        "more than best", "Mw", "variance reduction",
    ):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for k in np.argsort(-found["log_evidence"].values):
        one = {str(key): value for key, value in found.isel(model=int(k)).items()}
        low, high = one["magnitude_interval"].values
        table.add_row(
            str(found["model"].values[k]),
            _with_error(one, "log_evidence", ".1f"),
            f"{float(one['probability']):.2g}",
            f"{float(one['score']):.3g}",
            _with_error(one, "score_less_best", ".2g"),
            f"{float(one['magnitude']):.2f} ({low:.2f} to {high:.2f})",
            f"{float(one['variance_reduction']):.2%}",
        )
    return table


def _with_error(one: dict[str, Any], name: str, form: str) -> str:
    value, error = float(one[name]), float(one[f"{name}_error"])
    return f"{value:{form}} ± {error:{form}}" if error else f"{value:{form}}"


def sentences(found: xr.Dataset) -> list[str]:
    """Say where the choice of a model decides which way a station moves.

    The largest disagreements first, each component of a station at one time.
    """
    motion, decides = found["change"].values, found["decides"].values
    size = np.where(decides, np.minimum(motion.max(axis=0), -motion.min(axis=0)), 0.0)
    time = size.argmax(axis=0)
    largest = size.max(axis=0)
    count = int((largest > 0.0).sum())
    if not count:
        return ["no station's motion after the event changes its sign with the model"]
    said = []
    names = found["model"].values.astype(str)
    for flat in np.argsort(-largest, axis=None)[: min(count, FEW)]:
        p, c = np.unravel_index(flat, largest.shape)
        t = time[p, c]
        low, high = (int(arg) for arg in np.argsort(motion[:, t, p, c])[[0, -1]])
        said.append(
            f"the model decides the sign at {found['station'].values[p]}, "
            f"{found['component'].values[c]}, after {float(found['time'][t]):.3g} yr: "
            f"{1e3 * motion[low, t, p, c]:+.0f} mm with {names[low]}, "
            f"{1e3 * motion[high, t, p, c]:+.0f} mm with {names[high]}"
        )
    if count > FEW:
        said.append(f"and for {count - FEW} more components, in comparison.nc")
    return said
