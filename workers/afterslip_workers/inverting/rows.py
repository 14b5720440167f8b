"""Observations as rows: one number of one station at one epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import Float, Int

COMPONENTS = ("east", "north", "up", "los")
LOS = 3


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


class RowCollector:
    """Builds rows one number at a time; stations are told apart by name."""

    def __init__(self) -> None:
        self._stations: dict[str, tuple[int, float, float]] = {}
        self._rows: list[tuple[int, int, Float, float, float, str, str, float]] = []

    def add(
        self,
        station: tuple[str, float, float],
        component: int,
        direction: Float,
        value: float,
        sigma: float,
        label: tuple[str, str, float],
    ) -> None:
        """Take one number.

        Parameters
        ----------
        station : name, x, y (m).
        value, sigma : m.
        label : type, data set, epoch (s).
        """
        name, x, y = station
        place, _, _ = self._stations.setdefault(name, (len(self._stations), x, y))
        self._rows.append((place, component, direction, value, sigma, *label))

    def collect(self) -> Rows:
        """Return everything taken so far as arrays."""
        held = list(self._stations.values())
        columns = list(zip(*self._rows, strict=True)) if self._rows else [[]] * 8
        return Rows(
            stations=tuple(self._stations),
            x=np.array([item[1] for item in held], dtype=np.float64),
            y=np.array([item[2] for item in held], dtype=np.float64),
            station=np.array(columns[0], dtype=np.int64),
            component=np.array(columns[1], dtype=np.int64),
            direction=np.array(columns[2], dtype=np.float64).reshape(-1, 3),
            value=np.array(columns[3], dtype=np.float64),
            sigma=np.array(columns[4], dtype=np.float64),
            kind=np.array(columns[5], dtype=str),
            dataset=np.array(columns[6], dtype=str),
            epoch=np.array(columns[7], dtype=np.float64),
        )
