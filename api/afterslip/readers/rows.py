"""Data as rows: one number of one station at one epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


MOTIONS = ("displacement", "velocity")
"""Kinds of series of ground motion; all others are displacements that stay."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """How a series of ground motion was sampled before it became rows.

    Attributes
    ----------
    sampling : s, of the file.
    every : samples of the file from one row to the next.
    lowpass : Hz, of the filter that the series went through; None: of none.
    """

    sampling: float
    every: int = 1
    lowpass: float | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """Data of one or several data sets.

    Attributes
    ----------
    stations : names, unique, in the order of the data.
    x, y : (n_station,) float64, m, local frame.
    station : (n_obs,) int64, position in ``stations``.
    component : (n_obs,) int64, 0 east, 1 north, 2 up, 3 along ``direction``.
    direction : (n_obs, 3) float64, unit vector east, north, up.
    value, sigma : (n_obs,) float64, m; m/s where ``kind`` is velocity.
    kind : (n_obs,) gnss, gnssa, obp or insar, or one of `MOTIONS`.
    dataset : (n_obs,) name of its data set.
    epoch : (n_obs,) float64, s after the event.
    line : (n_obs,) int64, line in the file of its data set.
    given : (n_obs,) bool, the file gave the sigma, not the spec.
    blocks : (rows, matrix): (k,) int64 positions of rows whose errors are
        correlated, and their (k, k) covariance in m2; each row in one block at most.
    sampled : by data set, of those that are series of ground motion.
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
    line: Int
    given: Bool
    blocks: tuple[tuple[Int, Float], ...] = ()
    sampled: Mapping[str, Sampled] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def moving(self) -> Bool:
        """(n_obs,) bool, rows of series of ground motion."""
        return np.isin(self.kind, MOTIONS)


_BY_ROW = (
    "component", "direction", "value", "sigma", "kind", "dataset", "epoch", "line",
    "given",
)  # fmt: skip


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of several data sets; a station is one place in all of them."""
    if len(parts) == 1:
        return parts[0]
    number: dict[str, int] = {}
    xy: list[tuple[float, float]] = []
    station: list[Int] = []
    blocks: list[tuple[Int, Float]] = []
    first = 0
    for part in parts:
        for name, x, y in zip(part.stations, part.x, part.y, strict=True):
            if number.setdefault(name, len(number)) == len(xy):
                xy.append((float(x), float(y)))
        mine = np.array([number[name] for name in part.stations], dtype=np.int64)
        station.append(mine[part.station])
        blocks += [(rows + first, matrix) for rows, matrix in part.blocks]
        first += len(part)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in _BY_ROW
    }
    places = np.array(xy, dtype=np.float64).reshape(-1, 2)
    return replace(
        parts[0],
        stations=tuple(number),
        x=places[:, 0],
        y=places[:, 1],
        station=np.concatenate(station),
        blocks=tuple(blocks),
        sampled={name: how for part in parts for name, how in part.sampled.items()},
        **columns,
    )
