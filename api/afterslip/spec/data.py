"""Whether data fit together, the model's fault and what an inversion asks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError
from afterslip.readers.observations import SAME_PLACE
from afterslip.readers.rows import MOTIONS, Rows, joined
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip.units import KM, YEAR

Float = NDArray[np.float64]

# pairs or stations that one message names
SHOWN = 5
# times the size of the fault; slip is lost in the noise long before
FARTHEST = 5.0
# a full matrix of more pixels does not fit beside everything else in memory
MOST_CORRELATED = 8000
LEAST_FOR_VARIOGRAM = 30
_AXES = ("east", "north", "up", "los")
_PIXELS = "; a file of pixels needs no column station"
# columns that each term of a series needs
TERM_COLUMNS = {"offset": 1, "rate": 1, "annual": 2, "semiannual": 2}


def gather(parts: Sequence[Rows]) -> Rows:
    """Join the data sets of an inversion.

    Raises
    ------
    SpecError
        A station is at two places, or a datum is there twice.
    """
    problems = list(together(parts))
    if problems:
        raise SpecError(problems)
    return joined(parts)


def together(parts: Sequence[Rows]) -> Iterator[Problem]:
    """Say which stations are at two places and which data are there twice."""
    places: dict[str, tuple[float, float, str]] = {}
    for rows in parts:
        name = str(rows.dataset[0]) if len(rows) else ""
        for station, x, y in zip(rows.stations, rows.x, rows.y, strict=True):
            x0, y0, first = places.setdefault(station, (float(x), float(y), name))
            apart = float(np.hypot(x - x0, y - y0))
            if apart > SAME_PLACE:
                yield Problem(
                    "datasets",
                    station,
                    f"is a station in {name}, {apart:.0f} m from where {first} has it",
                    "rename one of them"
                    + (_PIXELS if (rows.component == 3).all() else ""),
                )
    if len(parts) > 1:  # within one data set they are found when it is read
        yield from duplicates(joined(parts))


def duplicates(rows: Rows) -> Iterator[Problem]:
    """Name data that are there twice: same place, time, direction and value."""
    key = np.column_stack(
        [
            np.round(np.column_stack([rows.x, rows.y])[rows.station], 0),
            rows.epoch,
            np.round(rows.direction, 6),
            rows.value,
            # nothing moves before the first wave, in displacement and in velocity
            np.where(rows.moving, rows.kind == MOTIONS[0], 2.0),
        ]
    )
    first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)[1:]
    earlier = first[inverse.ravel()]
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for b in np.flatnonzero(earlier != np.arange(len(rows))).tolist():
        a = int(earlier[b])
        here, there = (f"{rows.dataset[k]} line {rows.line[k]}" for k in (a, b))
        station = rows.stations[rows.station[b]]
        pairs.setdefault((there, here, station), []).append(_AXES[rows.component[b]])
    for (there, here, station), axes in list(pairs.items())[:SHOWN]:
        yield Problem(
            there,
            f"{station} {', '.join(axes)}",
            f"is the same datum as in {here}",
            "leave out one of them: it would count twice",
        )
    if len(pairs) > SHOWN:
        more = len(pairs) - SHOWN
        yield Problem(str(rows.dataset[0]), None, f"has {more} more lines twice")


def data_problems(
    request: Inversion,
    settings: Mapping[str, Dataset],
    tables: Mapping[str, Rows],
    faults: Mapping[str, Float],
) -> Iterator[Problem]:
    """Say why data cannot be inverted as a request asks; paths are within it.

    Parameters
    ----------
    settings, tables : by name, of all data sets that the request names.
    faults : (n, 2) float64, m, points in the plane of each fault that slips, of those
        that are known yet.
    """
    parts = [tables[name] for name in request.datasets]
    yield from together(parts)
    stations = {name for rows in parts for name in rows.stations}
    # the default gives way to few stations; a number that somebody chose does not
    usual = Inversion.model_fields["folds"].default
    automatic = "auto" in (request.smoothness, request.sparsity)
    least = 2 if request.folds == usual else request.folds
    if automatic and least > len(stations):
        yield Problem(
            "folds",
            request.folds,
            f"must be at most the number of stations with data, {len(stations)}",
            "use fewer folds, or give smoothness and sparsity",
        )
    for index, name in enumerate(request.datasets):
        for problem in _of_one(settings[name], tables[name]):
            yield problem.under(f"datasets[{index}]")
    yield from _increments(request, parts)
    yield from _far_away(parts, faults)


def _increments(request: Inversion, parts: Sequence[Rows]) -> Iterator[Problem]:
    if request.increments is None:
        return
    last = max(float(rows.epoch.max(initial=0.0)) for rows in parts)
    ends = request.increments.ends
    for index in range(1, len(ends)):
        if float(ends[index - 1]) >= last:
            yield Problem(
                f"increments.ends[{index}]",
                ends[index].text,
                "is of an interval that begins after the last datum",
                f"data end {last / YEAR:.4g} yr after the event",
            )
            return
    if last == 0.0:
        yield Problem(
            "increments", None, "need data after the event", "all data are at 0"
        )


def _far_away(parts: Sequence[Rows], faults: Mapping[str, Float]) -> Iterator[Problem]:
    """Name faults whose slip moves no datum that could tell."""
    from scipy.spatial import cKDTree
    from scipy.spatial.distance import pdist

    places = np.concatenate([np.column_stack([rows.x, rows.y]) for rows in parts])
    sizes, apart = {}, {}
    for name, points in faults.items():
        corners = points if len(points) < 500 else points[:: len(points) // 250]
        sizes[name] = float(pdist(corners).max(initial=0.0))
        apart[name] = float(cKDTree(points).query(places)[0].min())
    size = max(sizes.values(), default=0.0)
    far = [name for name in faults if apart[name] > FARTHEST * size > 0.0]
    for name in far:
        every = len(far) == len(faults)
        yield Problem(
            "datasets",
            [str(rows.dataset[0]) for rows in parts],
            f"have no station within {apart[name] / KM:.0f} km of the fault {name}, "
            f"and faults are up to {size / KM:.0f} km large",
            "are these data of another earthquake?"
            if every
            else f"leave {name} out of sources, or add data that its slip moves",
        )


def _of_one(dataset: Dataset, rows: Rows) -> Iterator[Problem]:
    los = rows.component == 3
    covariance = dataset.covariance
    pixels = covariance is not None and covariance.file is None
    for name, asked in (("ramp", dataset.ramp is not None), ("covariance", pixels)):
        if asked and not los.any():
            yield Problem(name, None, "is for lines of sight, and there are none")
    if pixels and los.sum() > MOST_CORRELATED:
        yield Problem(
            "covariance",
            int(los.sum()),
            f"pixels are more than {MOST_CORRELATED}",
            "reduce the scene first, e.g. by a quadtree",
        )
    if covariance is not None and covariance.variogram is not None:
        still = los & ~deforming(rows, dataset)
        if still.sum() < LEAST_FOR_VARIOGRAM:
            yield Problem(
                "covariance.variogram",
                int(still.sum()),
                f"pixels outside of x, y are too few: {LEAST_FOR_VARIOGRAM} are needed",
                "take a smaller window, or give exponential",
            )
    yield from _terms(dataset, rows)


def deforming(rows: Rows, dataset: Dataset) -> NDArray[np.bool_]:
    """(n_obs,) bool, data inside the window that a variogram leaves out."""
    window = dataset.covariance.variogram if dataset.covariance else None
    if window is None:
        return np.zeros(len(rows), dtype=bool)
    x, y = rows.x[rows.station] / KM, rows.y[rows.station] / KM
    low_x, high_x, low_y, high_y = *window.x, *window.y
    return np.asarray((x >= low_x) & (x <= high_x) & (y >= low_y) & (y <= high_y))


def _terms(dataset: Dataset, rows: Rows) -> Iterator[Problem]:
    needed = sum(TERM_COLUMNS[term] for term in dataset.terms or [])
    if not needed:
        return
    pair = np.column_stack([rows.station, rows.component])
    series, of_row = np.unique(pair, axis=0, return_inverse=True)
    of_row = of_row.ravel()
    short = []
    for k, (station, _) in enumerate(series.tolist()):
        if len(np.unique(rows.epoch[of_row == k])) <= needed:
            short.append(rows.stations[station])
    if short:
        names = list(dict.fromkeys(short))
        shown = ", ".join(names[:SHOWN]) + (" and more" if len(names) > SHOWN else "")
        yield Problem(
            "terms",
            list(dataset.terms or []),
            f"are {needed} unknowns for each component, and {shown} "
            f"have no more than {needed} epochs",
            "leave out terms or these stations",
        )


__all__ = [
    "TERM_COLUMNS",
    "data_problems",
    "deforming",
    "duplicates",
    "gather",
    "together",
]
