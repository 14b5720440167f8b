"""A fault's slip on a regular grid of subfaults, as rectangular formats want it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from afterslip.errors import one_problem
from afterslip.exports.triangles import fault_names

Float = NDArray[np.float64]

# pieces along each edge of a triangle; edges of subfaults cut triangles anywhere
_PIECES = 8
_MOST_PIECES = 2_000_000


@dataclass(frozen=True, slots=True)
class Subfaults:
    """Subfaults, those along strike first, from the top down.

    Attributes
    ----------
    fault : name.
    n_along, n_down : how many.
    along, down : m, size of one.
    position : (n, 3) float64, m, mean x, y, z of each.
    slip : (n, 2) float64, m, mean strike and dip.
    moment : (n,) float64, N m, length of the integral of rigidity times slip.
    strike, dip, rake : degrees, means weighted by slip.
    """

    fault: str
    n_along: int
    n_down: int
    along: float
    down: float
    position: Float
    slip: Float
    moment: Float
    strike: float
    dip: float
    rake: float

    def __len__(self) -> int:
        return len(self.slip)


def subfaults(result: xr.Dataset) -> list[Subfaults]:
    """Average the slip of each fault that has unit sources over their grid.

    Triangles are cut into small pieces, so that means and moments are those of the
    slip that the result shows, whatever the shape of the unit sources. Triangles reach
    over the edges of the slipping rectangle; what slips there counts for the nearest
    subfault. A subfault that the fault's outline leaves out has no slip.

    Returns
    -------
    One for each fault with sources, in the order of the faults' numbers.

    Raises
    ------
    SpecError
        The result lacks ``fault_length`` or ``fault_width``.
    """
    for name in ("fault_length", "fault_width"):
        if name not in result:
            raise one_problem("result", None, f"has no variable {name}")
    numbers = np.unique(result["source_fault"].values.astype(np.int64))
    return [_of_fault(result, int(number)) for number in numbers]


def _of_fault(result: xr.Dataset, number: int) -> Subfaults:
    own_sources = result["source_fault"].values == number
    patches = result["source_patch"].values[own_sources]
    counts = patches.max(axis=0).astype(np.int64) + 1
    extent = [
        float(result[name].values[number]) for name in ("fault_length", "fault_width")
    ]
    size = np.array(extent) / counts
    pieces = _pieces(result, number)
    place = np.floor(pieces.along_down / size).astype(np.int64)
    inside = ((place >= 0) & (place < counts)).all(axis=1)
    place = np.clip(place, 0, counts - 1)
    patch = place[:, 1] * counts[0] + place[:, 0]
    n = int(counts.prod())

    def total(values: Float) -> Float:
        return np.column_stack([np.bincount(patch, v, minlength=n) for v in values.T])

    own = np.where(inside, pieces.area, 0.0)[:, None]
    area = total(own)
    empty = area[:, 0] == 0
    area = np.where(empty[:, None], 1.0, area)
    position = total(own * pieces.position) / area
    if empty.any():
        along, down = np.meshgrid(np.arange(counts[0]), np.arange(counts[1]))
        middle = (np.column_stack([along.ravel(), down.ravel()]) + 0.5) * size
        near = cKDTree(pieces.along_down).query(middle[empty])[1]
        position[empty] = pieces.position[near]
    weight = pieces.area[:, None]
    vector = total(pieces.rigidity[:, None] * weight * pieces.slip)
    strike, dip, rake = _angles(pieces)
    return Subfaults(
        fault=str(fault_names(result)[number]),
        n_along=int(counts[0]),
        n_down=int(counts[1]),
        along=float(size[0]),
        down=float(size[1]),
        position=position,
        slip=np.where(empty[:, None], 0.0, total(weight * pieces.slip) / area),
        moment=np.hypot(vector[:, 0], vector[:, 1]),
        strike=strike,
        dip=dip,
        rake=rake,
    )


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Small parts of a fault's triangles: their area (m²) and what is at their middle.

    All are (n,) or (n, columns), in SI.
    """

    area: Float
    position: Float
    along_down: Float
    slip: Float
    strike: Float
    updip: Float
    rigidity: Float


def _pieces(result: xr.Dataset, number: int) -> _Pieces:
    """Cut the triangles of a fault."""
    nodes = np.asarray(result["fault_triangles"].values, dtype=np.int64)
    nodes = nodes[result["fault_index"].values[nodes[:, 0]] == number]
    xyz = np.column_stack([result[f"fault_{axis}"].values for axis in "xyz"])
    a, b, c = (xyz[nodes[:, i]] for i in range(3))
    whole = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    k = int(np.clip(np.sqrt(_MOST_PIECES / max(1, len(nodes))), 1, _PIECES))
    upright = [(i + 1 / 3, j + 1 / 3) for i in range(k) for j in range(k - i)]
    turned = [(i + 2 / 3, j + 2 / 3) for i in range(k) for j in range(k - i - 1)]
    middle = np.array(upright + turned) / k
    weights = np.column_stack([1.0 - middle.sum(axis=1), middle])

    def at(values: Float) -> Float:
        found = np.einsum("pk,tk...->tp...", weights, np.asarray(values)[nodes])
        return np.asarray(found).reshape(-1, *found.shape[2:])

    grid = [result[f"fault_{name}"].values for name in ("along", "down")]
    rigidity = np.full(len(xyz), float(result["source_rigidity"].values.mean()))
    if "fault_rigidity" in result:
        rigidity = result["fault_rigidity"].values
    return _Pieces(
        area=np.repeat(whole / len(weights), len(weights)),
        position=at(xyz),
        along_down=at(np.column_stack(grid)),
        slip=at(result["fault_slip"].values),
        strike=at(result["fault_strike"].values),
        updip=at(result["fault_updip"].values),
        rigidity=at(rigidity),
    )


def _angles(pieces: _Pieces) -> tuple[float, float, float]:
    """Return mean strike, dip and rake in degrees."""
    weight = pieces.area * np.hypot(pieces.slip[:, 0], pieces.slip[:, 1])
    if not weight.any():
        weight = pieces.area
    along, up, motion = (
        w @ v
        for w, v in (
            (weight, pieces.strike),
            (weight, pieces.updip),
            (pieces.area, pieces.slip),
        )
    )
    strike = np.degrees(np.arctan2(along[0], along[1])) % 360.0
    dip = np.degrees(np.arctan2(up[2], np.hypot(up[0], up[1])))
    rake = np.degrees(np.arctan2(motion[1], motion[0]))
    return float(strike), float(dip), float(rake)
