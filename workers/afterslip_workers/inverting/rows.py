"""Observations as rows: one number of one station at one epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip.error_class import ErrorClass
from afterslip.readers.observations import SAME_PLACE, Observations
from afterslip_solver.model import Float, Int
from afterslip_workers.errors import TaskError


@dataclass(frozen=True, slots=True)
class Rows:
    """All data of an inversion.

    Attributes
    ----------
    stations : names, unique, in the order of the data.
    x, y : (n_station,) float64, m, local frame.
    station : (n_obs,) int64, position in ``stations``.
    component : (n_obs,) int64, 0 east, 1 north, 2 up, 3 along ``direction``.
    direction : (n_obs, 3) float64, unit vector east, north, up.
    value, sigma : (n_obs,) float64, m.
    kind : (n_obs,) type of the datum.
    dataset : (n_obs,) name of its data set.
    epoch : (n_obs,) float64, s after the event.
    """

    stations: tuple[str, ...]
    x: Float
    y: Float
    station: Int
    component: Int
    direction: Float
    value: Float
    sigma: Float
    kind: NDArray[np.str_]
    dataset: NDArray[np.str_]
    epoch: Float

    def __len__(self) -> int:
        return len(self.value)


def collect(tables: Mapping[str, Observations]) -> Rows:
    """Join data sets; a station is one place, in whichever data sets it is.

    Parameters
    ----------
    tables : name of the data set → its observations.

    Raises
    ------
    TaskError
        Class ``bad_input``: two data sets put a station at different places.
    """
    places: dict[str, tuple[float, float]] = {}
    number: dict[str, int] = {}
    parts: dict[str, list[NDArray[Any]]] = {}
    for dataset, table in tables.items():
        for name, x, y in zip(table.name, table.x, table.y, strict=True):
            first = places.setdefault(name, (float(x), float(y)))
            number.setdefault(name, len(number))
            _same_place(dataset, name, first, (float(x), float(y)))
        rows = table.rows()
        of_entry = np.array([number[name] for name in table.name], dtype=np.int64)
        columns = {
            "station": of_entry[rows.station],
            "component": rows.component,
            "direction": rows.direction,
            "value": rows.value,
            "sigma": rows.sigma,
            "kind": rows.kind,
            "dataset": np.full(len(rows), dataset),
            "epoch": rows.time,
        }
        for key, values in columns.items():
            parts.setdefault(key, []).append(values)
    xy = np.array(list(places.values()), dtype=np.float64).reshape(-1, 2)
    joined = {key: np.concatenate(values) for key, values in parts.items()}
    return Rows(stations=tuple(places), x=xy[:, 0], y=xy[:, 1], **joined)


def _same_place(
    dataset: str, name: str, first: tuple[float, float], here: tuple[float, float]
) -> None:
    apart = float(np.hypot(first[0] - here[0], first[1] - here[1]))
    if apart > SAME_PLACE:
        raise TaskError(
            ErrorClass.BAD_INPUT,
            f"dataset {dataset}, station {name} = {apart:.0f} m away: another data set "
            "has this station elsewhere; rename one of them",
        )
