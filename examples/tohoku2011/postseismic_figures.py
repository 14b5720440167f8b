"""What slip and flow do to each station after the event, as a table and two figures."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from afterslip.archive import GreensStore
from afterslip.plot.style import (
    BLUE,
    FAINT,
    INK,
    SERIES_COLOURS,
    SKY,
    SOFT,
    VERMILLION,
    new_figure,
    styled,
)
from afterslip.result import open_result
from afterslip_common.terms import YEAR
from afterslip_solver.inversion import magnitude_of
from afterslip_workers.inverting.in_time import lag_rule

TIMES = np.array(
    [0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 2.5, 2.9, 3.67]
)
SHOWN = ("MYGI", "MYGW", "KAMS", "KAMN", "FUKU", "CHOS", "J550", "J188")
SEA = 6  # the first of them
RELATIVE = ("land-total", "land-series", "sea-series")  # to a position after the event


@dataclass(frozen=True)
class Parts:
    """Motion of `SHOWN` since just after the event in one model, of its best slip.

    Attributes
    ----------
    flow : (n_time, n_station, 3) m, relaxation after coseismic slip.
    slip : the same of afterslip, at once. late : relaxation after afterslip.
    data : by station (n, 4): yr, and east, north, up, m, since its first survey.
    """

    flow: np.ndarray
    slip: np.ndarray
    late: np.ndarray
    data: dict[str, np.ndarray]
    result: xr.Dataset

    @property
    def motion(self) -> np.ndarray:
        """(n_time, n_station, 3) m, all together."""
        return self.flow + self.slip + self.late

    @property
    def chi(self) -> dict[str, float]:
        """Root mean square of residuals over stated errors, by data set.

        Series have an offset for each component of each station. Errors of the mesh
        that grow from a constant leave it nearly free, so that it is removed here.
        """
        share = self.result["residual"].values / self.result["sigma"].values
        name = self.result["obs_dataset"].values.astype(str)
        of = ("obs_dataset", "obs_station", "obs_component")
        key = np.column_stack([self.result[column].values.astype(str) for column in of])
        _, group = np.unique(key, axis=0, return_inverse=True)
        mean = np.bincount(group.ravel(), share) / np.bincount(group.ravel())
        share = np.where(np.isin(name, RELATIVE), share - mean[group.ravel()], share)
        return {
            key: float(np.sqrt(np.mean(share[name == key] ** 2)))
            for key in np.unique(name)
        }


def parts_of(folder: Path) -> Parts:
    """Take the motion of a run apart."""
    result = open_result(folder / "result.nc")
    names = [str(name) for name in result["station"].values]
    place = [names.index(name) for name in SHOWN]
    x, y = (result[f"station_{axis}"].values[place] for axis in "xy")
    slip = result["slip_increment"].values
    ends = (result["increment_end"].values[1:] * YEAR).tolist()
    at = GreensStore(folder / "greens.zarr").sampler(x, y)
    flow, now, late = [], [], []
    for time in TIMES * YEAR:
        lags, weights = lag_rule(float(time), ends)
        found = at(np.append(lags, 0.0))
        at_once = found[:, -1]
        moved = np.einsum("bs,bt,stpc->bpc", slip, weights, found[:, :-1])
        elastic = np.einsum("bs,b,spc->bpc", slip, weights.sum(axis=1), at_once)
        flow.append(moved[0] - elastic[0])
        now.append(elastic[1:].sum(axis=0))
        late.append((moved - elastic)[1:].sum(axis=0))
    return Parts(*map(np.array, (flow, now, late)), _data(result), result)


def _data(result: xr.Dataset) -> dict[str, np.ndarray]:
    names = result["station"].values.astype(str)
    of_row = names[result["obs_station"].values]
    series = np.isin(result["obs_dataset"].values, ("sea-series", "land-series"))
    moved = result["observed"].values
    found = {}
    for name in SHOWN:
        mine = series & (of_row == name)
        epochs, where = np.unique(result["obs_epoch"].values[mine], return_inverse=True)
        rows = np.column_stack([epochs, np.full((len(epochs), 3), np.nan)])
        rows[where, 1 + result["obs_component"].values[mine]] = moved[mine]
        rows[:, 1:] -= rows[0, 1:]
        found[name] = rows
    return found


def eastward(parts: Parts, station: int) -> tuple[float, float, float, float]:
    """Motion from a station's first to its last survey, m east.

    Returns
    -------
    Observed, and of flow after the earthquake, afterslip at once and flow after it.
    """
    data = parts.data[SHOWN[station]]
    ends = data[[0, -1], 0]
    return float(np.diff(data[[0, -1], 1])[0]), *(
        float(np.diff(np.interp(ends, TIMES, part[:, station, 0]))[0])
        for part in (parts.flow, parts.slip, parts.late)
    )


def table(found: dict[str, Parts]) -> list[str]:
    """Lines of Markdown: moments and fit of each model, and who moves what."""
    sets = list(next(iter(found.values())).chi)
    said = ["| model | Mw at once | Mw of afterslip | elastic | " + " | ".join(sets)]
    said.append("|---" * (4 + len(sets)))
    for name, parts in found.items():
        moment = parts.result["moment_history"].values
        still = parts.result["moment_history_elastic"].values
        numbers = [magnitude_of(float(moment[0]))]
        numbers += [magnitude_of(float(m[-1] - m[0])) for m in (moment, still)]
        numbers += parts.chi.values()
        said.append(f"| {name} | " + " | ".join(f"{n:.2f}" for n in numbers))
    said += ["", "| cm east: flow + afterslip + its flow | " + " | ".join(SHOWN)]
    said.append("|---" * (1 + len(SHOWN)))
    for name, parts in found.items():
        each = [eastward(parts, k) for k in range(len(SHOWN))]
        cells = [" ".join(f"{1e2 * part:+.0f}" for part in one[1:]) for one in each]
        said.append(f"| {name} | " + " | ".join(cells))
    observed = [f"{1e2 * eastward(parts, k)[0]:+.0f}" for k in range(len(SHOWN))]
    said.append("| observed | " + " | ".join(observed))
    return [line + " |" if line else "" for line in said]


@styled
def motion(found: dict[str, Parts]) -> Figure:
    """Draw the motion of stations towards the east in each model, and the data."""
    figure = new_figure(4.6)
    axes = figure.subplots(2, 4, sharex=True).ravel()
    for k, (ax, name) in enumerate(zip(axes, SHOWN, strict=True)):
        for number, (title, parts) in enumerate(found.items()):
            colour = (*SERIES_COLOURS, SOFT)[number % 7]
            data, east = parts.data[name], parts.motion[:, k, 0]
            # where the surveys begin, as they say nothing of what was before
            ax.plot(
                TIMES,
                east - np.interp(data[0, 0], TIMES, east),
                color=colour,
                label=title,
            )
        ax.plot(data[:, 0], data[:, 1], "o", color=INK, markersize=2.5)
        ax.axhline(0.0, color=FAINT, linewidth=0.7, zorder=0)
        ax.set_title(f"{name}, {'sea floor' if k < SEA else 'land'}")
    for ax in axes[4:]:
        ax.set_xlabel("years after the event")
    for ax in axes[::4]:
        ax.set_ylabel("east since first survey (m)")
    _legend(figure, axes[0], 4)
    return figure


@styled
def shares(found: dict[str, Parts]) -> Figure:
    """Draw what flow and afterslip do to stations, and the moment of afterslip."""
    figure = new_figure(1.1 + 1.15 * len(found))
    panels = figure.subplots(len(found), 1, sharex=True, squeeze=False).ravel()
    place = np.arange(len(SHOWN))
    for ax, (title, parts) in zip(panels, found.items(), strict=True):
        observed, *each = np.array([eastward(parts, k) for k in place]).T
        low, high = np.zeros(len(place)), np.zeros(len(place))
        kinds = ("flow after the earthquake", "afterslip", "flow after afterslip")
        for part, kind, colour in zip(
            each, kinds, (BLUE, VERMILLION, SKY), strict=True
        ):
            base = np.where(part < 0, low, high)
            ax.bar(place, part, 0.6, bottom=base, color=colour, label=kind)
            low, high = low + np.minimum(part, 0), high + np.maximum(part, 0)
        ax.plot(place, sum(each), "_", color=INK, markersize=16, label="model")
        ax.plot(place, observed, "o", color=INK, markersize=4, label="observed")
        ax.axhline(0.0, color=INK, linewidth=0.7)
        ax.set_title(title)
        ax.set_ylabel("m east")
    panels[-1].set_xticks(place, SHOWN)
    _legend(figure, panels[0], 5)
    return figure


def _legend(figure: Figure, ax: Axes, columns: int) -> None:
    said = ax.get_legend_handles_labels()
    figure.legend(*said, ncols=columns, loc="outside lower center")
