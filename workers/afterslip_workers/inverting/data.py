"""Errors of the data as an inversion weighs them, and what is unknown beside slip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from afterslip.error_class import ErrorClass
from afterslip.readers.rows import Rows
from afterslip.schemas.observation import Dataset
from afterslip.spec.data import deforming
from afterslip.units import KM, YEAR
from afterslip_solver.inversion import Block, Variogram, exponential, fit_variogram
from afterslip_solver.model import Bool, Float, Int
from afterslip_workers.errors import TaskError

# singular values of a ramp's columns of length one, below which a part is unknown: as
# squares, those of the normal equations, they are lost in the rounding of the data's
DEGENERATE = 1e-6


@dataclass(frozen=True, slots=True)
class Unknown:
    """One number that is estimated beside the slip.

    Attributes
    ----------
    name : translation, ramp …, offset, rate, annual cos …
    dataset : name of its data set.
    station : position in the stations; -1 where stations share it.
    component : 0 east, 1 north, 2 up, 3 line of sight.
    epoch : s, of the scene of a ramp; nan where epochs share it.
    unit : of its value.
    column : (n_obs,) float64, its part in each datum per unit.
    """

    name: str
    dataset: str
    station: int
    component: int
    epoch: float
    unit: str
    column: Float


def with_errors(
    rows: Rows, settings: Mapping[str, Dataset]
) -> tuple[Rows, dict[str, Variogram]]:
    """Return rows with the errors that their data sets ask for.

    The given errors times ``scale``, then the floor and the correlated part of
    pixels added as squares, all divided by the root of a ``weight`` that is given.

    Parameters
    ----------
    settings : by name, of every data set of the rows.

    Returns
    -------
    The rows, and the variograms that were made, by data set.
    """
    sigma = rows.sigma.copy()
    blocks = [(index, matrix.copy()) for index, matrix in rows.blocks]
    variograms: dict[str, Variogram] = {}
    for name, dataset in settings.items():
        mine = rows.dataset == name
        own = [pair for pair in blocks if mine[pair[0]].all()]
        factor = dataset.scale or 1.0
        floor = _floor(rows, dataset)
        sigma[mine] = np.hypot(sigma[mine] * factor, floor[mine])
        for index, matrix in own:
            matrix *= factor**2
            matrix[np.diag_indices(len(index))] += floor[index] ** 2
        shared = _shared(rows, dataset, mine, variograms)
        deviation, length = shared or (0.0, 0.0)
        for scene in _scenes(rows, mine) if shared else ():
            place = rows.station[scene]
            x, y = rows.x[place], rows.y[place]
            matrix = exponential(x, y, deviation, length)
            matrix[np.diag_indices(len(scene))] += sigma[scene] ** 2
            sigma[scene] = np.sqrt(np.diag(matrix))
            blocks.append((scene, matrix))
            own.append(blocks[-1])
        weight = 1.0 if dataset.variance_free else float(dataset.weight or 1.0)
        sigma[mine] /= np.sqrt(weight)
        for _, matrix in own:
            matrix /= weight
    return replace(rows, sigma=sigma, blocks=tuple(blocks)), variograms


def _floor(rows: Rows, dataset: Dataset) -> Float:
    """(n_obs,) float64, m, what is added to the given errors as squares."""
    floor = dataset.floor
    if floor is None:
        return np.zeros(len(rows))
    by_component = [floor.horizontal, floor.horizontal, floor.vertical, floor.los]
    absolute = np.array([value or 0.0 for value in by_component])[rows.component]
    relative = (floor.relative or 0.0) * np.abs(rows.value)
    return np.asarray(np.hypot(absolute, relative))


def _shared(
    rows: Rows, dataset: Dataset, mine: Bool, variograms: dict[str, Variogram]
) -> tuple[float, float] | None:
    """Return sigma and length, m, of the errors that pixels share; None: none."""
    covariance = dataset.covariance
    if covariance is None or covariance.file is not None:
        return None
    if covariance.exponential is not None:
        return covariance.exponential.sigma, covariance.exponential.length * KM
    still = mine & (rows.component == 3) & ~deforming(rows, dataset)
    place = rows.station[still]
    try:
        found = fit_variogram(rows.x[place], rows.y[place], rows.value[still])
    except ValueError as error:
        raise TaskError(
            ErrorClass.BAD_INPUT, f"datasets {dataset.name}, variogram: {error}"
        ) from error
    variograms[dataset.name] = found
    return found.sigma, found.length


def _scenes(rows: Rows, mine: Bool) -> Iterator[Int]:
    """Yield the rows of each line-of-sight scene: one data set at one epoch."""
    los = mine & (rows.component == 3)
    for epoch in np.unique(rows.epoch[los]):
        yield np.flatnonzero(los & (rows.epoch == epoch))


def unknowns(rows: Rows, settings: Mapping[str, Dataset]) -> list[Unknown]:
    """Return what is unknown beside slip, data set by data set."""
    found: list[Unknown] = []
    for name, dataset in settings.items():
        mine = rows.dataset == name
        if dataset.translation:
            found += _translations(rows, name, mine)
        if dataset.ramp is not None:
            for scene in _scenes(rows, mine):
                found += _ramp(rows, name, scene, dataset, bool(dataset.translation))
        if dataset.terms:
            found += _terms(rows, name, mine, dataset)
    return found


def _column(rows: Rows, index: Int, values: Float | float) -> Float:
    column = np.zeros(len(rows))
    column[index] = values
    return column


def _translations(rows: Rows, name: str, mine: Bool) -> Iterator[Unknown]:
    for component in range(3):
        index = np.flatnonzero(mine & (rows.component == component))
        if len(index):
            yield Unknown(
                "translation", name, -1, component, np.nan, "m",
                _column(rows, index, 1.0),
            )  # fmt: skip
    # every scene has a datum of its own
    for scene in _scenes(rows, mine):
        epoch = float(rows.epoch[scene[0]])
        yield Unknown("translation", name, -1, 3, epoch, "m", _column(rows, scene, 1.0))


def _ramp(
    rows: Rows, name: str, scene: Int, dataset: Dataset, translated: bool
) -> Iterator[Unknown]:
    """Yield a surface over a scene, in 100 km from its middle."""
    x, y = (
        (axis[rows.station[scene]] - axis[rows.station[scene]].mean()) / (100 * KM)
        for axis in (rows.x, rows.y)
    )
    parts: dict[str, Float] = {} if translated else {"constant": np.ones(len(scene))}
    parts |= {"x": x, "y": y}
    if dataset.ramp == "quadratic":
        parts |= {"xx": x * x, "xy": x * y, "yy": y * y}
    epoch = float(rows.epoch[scene[0]])
    for part, values in parts.items():
        power = 0 if part == "constant" else len(part)
        unit = "m" if not power else f"m/(100 km)^{power}"
        column = _column(rows, scene, values)
        yield Unknown(f"ramp {part}", name, -1, 3, epoch, unit, column)


def refuse_degenerate_ramps(
    beside: Sequence[Unknown], settings: Mapping[str, Dataset]
) -> None:
    """Refuse ramps that the places of the pixels do not determine.

    A straight profile says nothing of the slope across it, whatever slipped.

    Parameters
    ----------
    beside : as of `unknowns`.
    settings : by name, of every data set.

    Raises
    ------
    TaskError
        Where a scene's pixels lie on a line, or are fewer than its ramp's parts.
    """
    scenes: dict[tuple[str, float], list[Float]] = {}
    for item in beside:
        if item.component == 3 and item.station < 0:
            scenes.setdefault((item.dataset, item.epoch), []).append(item.column)
    for (name, epoch), columns in scenes.items():
        shape = np.column_stack(columns)
        pixels = int(shape.any(axis=1).sum())
        shape = shape / np.maximum(np.linalg.norm(shape, axis=0), 1e-300)
        if np.linalg.matrix_rank(shape, tol=DEGENERATE) == len(columns):
            continue
        ramp = settings[name].ramp
        raise TaskError(
            ErrorClass.BAD_INPUT,
            f"datasets {name}, ramp: {ramp}: the {pixels} pixels at "
            f"{epoch / YEAR:g} yr are too few, or too nearly on one line, to determine "
            "it: leave ramp out, or give translation: true instead for an offset alone",
        )


def _terms(rows: Rows, name: str, mine: Bool, dataset: Dataset) -> Iterator[Unknown]:
    pairs = np.column_stack([rows.station, rows.component])
    for station, component in np.unique(pairs[mine], axis=0).tolist():
        index = np.flatnonzero(
            mine & (rows.station == station) & (rows.component == component)
        )
        for term, unit, values in _functions(dataset, rows.epoch[index] / YEAR):
            yield Unknown(
                term, name, station, component, np.nan, unit,
                _column(rows, index, values),
            )  # fmt: skip


def _functions(dataset: Dataset, years: Float) -> Iterator[tuple[str, str, Float]]:
    """Yield name, unit and values of the functions of time, in yr after the event."""
    for term in dataset.terms or []:
        if term == "offset":
            yield term, "m", np.ones_like(years)
        elif term == "rate":
            yield term, "m/yr", years
        else:
            angle = 2.0 * np.pi * years * (2.0 if term == "semiannual" else 1.0)
            yield f"{term} cos", "m", np.cos(angle)
            yield f"{term} sin", "m", np.sin(angle)


def problem_terms(
    rows: Rows, settings: Mapping[str, Dataset], beside: Sequence[Unknown]
) -> dict[str, Any]:
    """Return the fields of an InversionProblem that are about the data alone."""
    names = list(settings)
    number = {name: index for index, name in enumerate(names)}
    return {
        "data": rows.value,
        "sigma": rows.sigma,
        "station": rows.station,
        "kind": rows.kind,
        "position": np.column_stack([rows.x, rows.y]),
        "dataset": np.array([number[name] for name in rows.dataset], dtype=np.int64),
        "variance_free": np.array([settings[name].variance_free for name in names]),
        "covariance": tuple(Block(index, matrix) for index, matrix in rows.blocks),
        "nuisance": np.column_stack([unknown.column for unknown in beside])
        if beside
        else np.zeros((0, 0)),
    }


def robust_rows(rows: Rows, settings: Mapping[str, Dataset]) -> Bool:
    """(n_obs,) bool, rows of data sets in which data far off weigh less."""
    names = [name for name, dataset in settings.items() if dataset.robust]
    return np.asarray(np.isin(rows.dataset, names))


def dataset_facts(
    rows: Rows, settings: Mapping[str, Dataset], variograms: Mapping[str, Variogram]
) -> list[dict[str, Any]]:
    """Return of each data set how its errors came about, for the report."""
    found = []
    for name, dataset in settings.items():
        mine = rows.dataset == name
        fact: dict[str, Any] = {
            "name": name,
            "count": int(mine.sum()),
            "sigma_of_file": int((mine & rows.given).sum()),
            "correlated": dataset.covariance is not None
            or any(bool(mine[index].any()) for index, _ in rows.blocks),
            "errors": dataset.model_dump(
                mode="json",
                exclude_none=True,
                include={"sigma", "floor", "scale", "weight", "robust"},
            ),
        }
        if dataset.series is not None:
            sampled = rows.sampled.get(name)
            every = 1 if sampled is None else sampled.every
            fact["series"] = dataset.series.model_dump(mode="json") | {
                "sampling": None if sampled is None else every * sampled.sampling
            }
        made = variograms.get(name)
        if made is not None:
            fact["variogram"] = {
                "sigma": made.sigma, "nugget": made.nugget, "length": made.length
            }  # fmt: skip
        found.append(fact)
    return found
