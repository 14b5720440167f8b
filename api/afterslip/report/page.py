"""Write the report: figures, tables and one HTML page that holds them all."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from afterslip import plot
from afterslip.exports.table import write_slip
from afterslip.physics.registry import find, name_of
from afterslip.report.methods import inputs, methods
from afterslip.report.tables import (
    beside_rows,
    dataset_rows,
    station_rows,
    write_fit,
)
from afterslip.result import (
    check,
    datasets_of,
    facts,
    fit_by_dataset,
    fit_by_type,
    is_geographic,
    moving,
    slip_magnitude,
)
from afterslip.thinning import thinned
from afterslip.units import largest_slip, limits, power_of_ten, readable_time
from afterslip.version import __version__

FIGURES: tuple[tuple[str, Callable[..., Figure], str, str], ...] = (
    (
        "slip_map",
        plot.slip_map,
        "Slip",
        "Slip on the fault in map view. Contours and colour: amount; arrows: motion "
        "of the side above the fault (on a vertical one, of the side to the right of "
        "strike); thick line: the fault's upper edge.",
    ),
    (
        "data_fit",
        plot.data_fit,
        "Data and fit",
        "Left: observed displacements with 95 % errors, and predicted ones. Right: "
        "what is left, in a scale of its own. Of each station the first epoch, and "
        "the first of several data sets.",
    ),
    (
        "scene_fit",
        plot.scene_fit,
        "Line of sight",
        "Displacement along the line of sight: observed, predicted in the same scale, "
        "and what is left in a scale of its own.",
    ),
    (
        "motion_fit",
        plot.motion_fit,
        "Ground motion",
        "Black: observed, filtered as the inversion took it; red, dashed: predicted. "
        "Of each data set the stations with the largest motion, which stands beside "
        "the name and is the scale of the station's three traces.",
    ),
    (
        "misfit",
        plot.misfit,
        "Misfit",
        "Left: every datum against its prediction. Right: residuals in units of "
        "their standard deviations; the curve is what the stated errors promise.",
    ),
    (
        "time_series",
        plot.time_series,
        "Through time",
        "Displacement predicted from this slip alone. The dashed line is the elastic "
        "part; the band is what viscoelastic flow adds to it.",
    ),
    (
        "moment_history",
        plot.moment_history,
        "Moment through time",
        "Moment of the coseismic slip and the afterslip so far, with its 95 % band "
        "from the draws, signs included. Dashed: from the same data at the "
        "same weights where rock does not flow; flow is then taken for slip.",
    ),
    (
        "moment_rate",
        plot.moment_rate,
        "Moment rate",
        "Left: moment rate with its 95 % band from the draws, signs included. Right: "
        "when a tenth of the slip of a unit source is done, by its distance from the "
        "hypocentre; the grey line ends where nine tenths are. Sources with less than "
        "a tenth of the largest slip are left out.",
    ),
    (
        "resolution",
        plot.resolution,
        "What the data see",
        "Diagonal of the resolution matrix and standard deviation of the slip, which "
        "holds what is written below it. "
        "Outside the white line less than half of the slip is resolved by the data.",
    ),
    (
        "restoration",
        plot.restoration,
        "Slip that is known",
        "Left: slip that was put in. Right: what the inversion finds from its data "
        "without errors, at the weights and within the bounds of this result. "
        "`afterslip test-resolution` makes others, also with errors.",
    ),
    (
        "cv_curve",
        plot.cv_curve,
        "Choice of smoothness",
        "Misfit of data held out, station by station, with one standard error. Where "
        "the evidence has chosen, this is a check of its choice.",
    ),
)


def write_report(
    directory: str | Path,
    result: xr.Dataset,
    greens: xr.Dataset | None = None,
    campaign: Any = None,
) -> Path:
    """Write ``report.html``, its figures (PNG), ``slip.csv`` and ``data_fit.csv``.

    Parameters
    ----------
    directory : is made where it does not exist.
    result : data set laid out as ``docs/files.md`` says.
    greens : the campaign's store, for facts that the result does not carry.
    campaign : spec of the campaign (mapping, or an object with ``to_dict``), where
        the result does not carry it.

    Returns
    -------
    Path of ``report.html``, which needs none of the other files.

    Raises
    ------
    ValueError
        when ``result`` is not an inversion's result.
    """
    check(result)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    figures, shown = [], thinned(result)
    for name, draw, title, caption in applicable(result):
        path = plot.save(draw(shown), folder / f"{name}.png")
        image = base64.b64encode(path.read_bytes()).decode("ascii")
        figures.append(
            {"name": name, "title": title, "caption": caption, "image": image}
        )
    write_slip(result, folder / "slip.csv")
    write_fit(result, folder / "data_fit.csv")
    page = folder / "report.html"
    page.write_text(render(result, figures, greens, campaign), encoding="utf-8")
    return page


def applicable(
    result: xr.Dataset,
) -> list[tuple[str, Callable[..., Figure], str, str]]:
    """Return the figures that these data fill."""
    without = set()
    component = np.asarray(result["obs_component"].values)
    if not (component == 3).any():
        without.add("scene_fit")
    if "moment_history" not in result:
        without.add("moment_history")
    if "moment_rate" in result:
        # its band of flow is that of displacement through years
        without.add("time_series")
    else:
        without.add("moment_rate")
    if not moving(result).any():
        without.add("motion_fit")
    if "test_slip" not in result:
        without.add("restoration")
    if not ((component < 3) & ~moving(result)).any():
        without.add("data_fit")
    return [figure for figure in FIGURES if figure[0] not in without]


def render(
    result: xr.Dataset,
    figures: list[dict[str, str]],
    greens: xr.Dataset | None = None,
    campaign: Any = None,
) -> str:
    """Return the page's HTML; ``figures`` are PNG in base64 with their texts."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows, total = station_rows(result)
    spec = _spec(result, campaign)
    return environment.get_template("report.html.j2").render(
        title=_title(result),
        headline=headline(result),
        kind="dynamic" if "moment_rate" in result else "viscoelastic",
        fits=[*fit_by_dataset(result), *fit_by_type(result)],
        datasets=dataset_rows(result),
        beside=beside_rows(result),
        figures={f["name"]: f for f in figures},
        stations=rows,
        station_total=total,
        with_epochs=len({row["epoch"] for row in rows}) > 1,
        with_datasets=len(set(datasets_of(result).tolist())) > 1,
        caveats=list(map(str, facts(result, "warnings") or [])),
        model=model_facts(result, greens),
        request=facts(result, "request"),
        spec=_yaml(spec) if spec else "",
        methods=methods(result),
        digests=inputs(result),
        digest=str(result.attrs.get("digest", "")),
        versions=facts(result, "versions") or {"afterslip": __version__},
    )


def _title(result: xr.Dataset) -> str:
    parts = (result.attrs.get(k) for k in ("campaign_name", "inversion"))
    return " · ".join(str(p) for p in parts if p) or "Inversion"


def _spec(result: xr.Dataset, campaign: Any) -> Mapping[str, Any] | None:
    spec = facts(result, "spec")
    if spec is None and campaign is not None:
        spec = campaign.to_dict() if hasattr(campaign, "to_dict") else campaign
        spec = spec.get("spec", spec)
    return spec if isinstance(spec, Mapping) else None


def headline(result: xr.Dataset) -> list[tuple[str, str, str]]:
    """Return (name, value, remark) of the numbers that people quote."""
    attrs = result.attrs
    score = attrs.get("score")
    error = attrs.get("score_se")
    numbers = [
        (
            "Magnitude",
            f"Mw {float(attrs['magnitude']):.2f}"
            + limits(attrs.get("magnitude_interval"), ".2f"),
            f"moment {power_of_ten(float(attrs['moment']))} N m, "
            "of the vector sum of slip",
        ),
        (
            "Largest slip",
            largest_slip(attrs, ".1f"),
            _where(result),
        ),
        (
            "Variance reduction",
            f"{100 * float(attrs['variance_reduction']):.1f} %",
            f"{_unweighted(result)}{result.sizes['obs']} data at "
            f"{result.sizes['station']} stations",
        ),
    ]
    if score is not None and np.isfinite(score):
        spread = f" ± {float(error):.2g}" if error is not None else ""
        folds = attrs.get("folds")
        remark = "mean square of held-out residual / sigma"
        numbers.append(
            (
                f"Score of {int(folds)} folds" if folds else "Score",
                f"{float(score):.3g}{spread}",
                remark,
            )
        )
    return numbers


def _unweighted(result: xr.Dataset) -> str:
    plain = result.attrs.get("variance_reduction_unweighted")
    if plain is None or not np.isfinite(plain):
        return ""
    return f"{100 * float(plain):.1f} % without weights; "


def _where(result: xr.Dataset) -> str:
    most = int(np.argmax(slip_magnitude(result)))
    # zero minus the height, so that the ground is not at -0 km
    depth = 0.0 - float(result["fault_z"].values[most]) / 1e3
    if is_geographic(result):
        lon = (float(result["fault_lon"].values[most]) + 180.0) % 360.0 - 180.0
        lat = float(result["fault_lat"].values[most])
        place = f"{abs(lat):.2f}°{'N' if lat >= 0 else 'S'} "
        place += f"{abs(lon):.2f}°{'E' if lon >= 0 else 'W'}"
    else:
        x, y = (float(result[f"fault_{c}"].values[most]) / 1e3 for c in "xy")
        place = f"x {x:.0f} km, y {y:.0f} km"
    deep = f"{depth:.0f} km deep" if depth >= 0.5 else "at the surface"
    return f"{place}, {deep}"


def model_facts(
    result: xr.Dataset, greens: xr.Dataset | None = None
) -> list[tuple[str, str]]:
    """Return (name, value) of what was computed, and how exactly."""
    model = facts(result, "model") or {}
    physics = find(name_of(facts(result, "spec")))
    solved = physics.solved(facts(result, "solver") or {}, greens)
    quality = model.get("quality") or {}
    rows: list[tuple[str, Any]] = [
        ("Unit sources", f"{result.sizes['source']:,}"),
        ("Unknowns of the displacement field", _count(model.get("n_unknowns"))),
        ("Elements", _count(model.get("n_elements"))),
        ("Mesh quality", _quality(quality)),
        ("Notes", "; ".join(model.get("notes") or [])),
        *solved,
        ("Errors of the predictions, in the covariance", _predicted(result)),
        ("Smoothness λ, sparsity μ", _pair(result)),
    ]
    return [(name, value) for name, value in rows if value]


def _pair(result: xr.Dataset) -> str | None:
    values = [result.attrs.get(k) for k in ("smoothness", "sparsity")]
    return None if None in values else ", ".join(f"{float(v):.3g}" for v in values)  # type: ignore[arg-type]


def _count(value: Any) -> str | None:
    return None if value is None else f"{int(value):,}"


def _predicted(result: xr.Dataset) -> str | None:
    """Say how large the errors of the Green's functions are at the data."""
    if "model_sigma" not in result:
        return None
    sigma = 1e3 * np.asarray(result["model_sigma"].values, dtype=np.float64)
    return f"{np.sqrt(np.mean(sigma**2)):.2g} mm rms, {sigma.max():.2g} mm at most"


QUALITY = {
    "gamma_min": "least γ {:.2f}",
    "gamma_mean": "mean γ {:.2f}",
    "aspect_99pct": "aspect below {:.1f} for 99 %",
    "aspect_max": "largest aspect {:.1f}",
}


def _quality(values: Any) -> str | None:
    """Write shape (γ: inscribed over circumscribed sphere, 1 is best) and edges."""
    if not isinstance(values, Mapping):
        return None
    parts = [form.format(values[key]) for key, form in QUALITY.items() if key in values]
    if "edge_min" in values and "edge_max" in values:
        low, high = values["edge_min"] / 1e3, values["edge_max"] / 1e3
        parts.append(f"edges {low:.3g} to {high:.3g} km")
    return ", ".join(parts) or None


_SECONDS = re.compile(r"[0-9.e+]+ s")


def _readable(value: Any) -> Any:
    """Return plain values with the seconds of the canonical form as people write."""
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        return readable_time(value)
    return value


def _yaml(spec: Mapping[str, Any]) -> str:
    """Write a spec with its innermost mappings and lists on one line each."""
    return yaml.safe_dump(
        _readable(spec), sort_keys=False, allow_unicode=True, default_flow_style=None
    )
