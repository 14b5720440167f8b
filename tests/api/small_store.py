"""A store of two groups on a small surface, without any solve."""

import numpy as np

from afterslip.archive import SourceTable, StationTable, SurfaceTable
from afterslip.units import YEAR

N_SOURCE, N_MODE, TIMES = 6, 9, [0.0, 0.5 * YEAR, 10 * YEAR]


def square(n: int = 3, size: float = 1e4) -> SurfaceTable:
    """Return a structured surface of 2 n² second-order triangles."""
    axis = np.linspace(-size, size, 2 * n + 1)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    number = np.arange(x.size).reshape(x.shape)
    faces = []
    for i in range(0, 2 * n, 2):
        for j in range(0, 2 * n, 2):
            a, b, c, d = (
                number[p] for p in ((i, j), (i + 2, j), (i + 2, j + 2), (i, j + 2))
            )
            centre = number[i + 1, j + 1]
            faces.append([a, b, c, number[i + 1, j], number[i + 2, j + 1], centre])
            faces.append([a, c, d, centre, number[i + 1, j + 2], number[i, j + 1]])
    nodes = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    return SurfaceTable(nodes, np.array(faces), x.ravel() / 1e5, y.ravel() / 1e5)


def sources() -> SourceTable:
    rng = np.random.default_rng(0)
    return SourceTable(
        ["main", "splay"],
        np.array([0, 0, 0, 0, 1, 1]),
        np.arange(N_SOURCE) % 2,
        np.arange(12).reshape(6, 2),
        rng.normal(size=(6, 3)) * 1e4,
        np.full(6, 1e8),
        np.full(6, 4e10),
    )


def stations() -> StationTable:
    return StationTable(["Ōshika", "MYGI"], np.array([0.0, 1e3]), np.array([1.0, 2e3]))


def group_values(n_lane: int, seed: int, n_mode: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    recurrence = np.zeros((n_lane, n_mode, 2))
    recurrence[:, 1:, 0] = rng.uniform(1e-9, 2e-9, (n_lane, n_mode - 1))
    recurrence[:, 1:-1, 1] = 1e-10
    return {
        "response": rng.normal(size=(n_lane, n_mode, 49, 3)),
        "recurrence": recurrence,
        "start_norm": rng.uniform(1, 2, n_lane),
        "shift": np.zeros(n_lane),
        "displacement": rng.normal(size=(n_lane, 3, 2, 3)),
        "mode_count": np.full(n_lane, n_mode),
        "residual": np.full(n_lane, 1e-9),
        "time_error": np.full(n_lane, 1e-7),
        "iterations": np.zeros(n_lane),  # equal to its fill value, yet a file
    }
