"""What an inversion makes of slip that is known, from its result alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from afterslip.errors import one_problem

Float = NDArray[np.float64]
Int = NDArray[np.int64]

MATRICES = ("resolution_matrix", "covariance_matrix")


def checkerboard(grid: Int, sign: Int, cells: int, amount: float = 1.0) -> Float:
    """(n_source,) float64, m: squares of sources with and without slip by turns.

    The slip has the sign that is allowed, and is positive where both are.

    Parameters
    ----------
    grid : (n_source, 4): fault, component, along strike, down dip.
    sign : (n_source,) 1, -1 or 0.
    cells : sources along the side of a square.
    amount : m.
    """
    along, down = grid[:, 2] // cells, grid[:, 3] // cells
    side = np.where(sign < 0, -1.0, 1.0)
    return np.asarray(amount * side * ((along + down) % 2 == 0))


def spike(grid: Int, sign: Int, along: int, down: int, amount: float = 1.0) -> Float:
    """(n_source,) float64, m: slip of one place of the grid of sources alone.

    Raises
    ------
    SpecError
        Where there is no source at this place.
    """
    here = (grid[:, 2] == along) & (grid[:, 3] == down)
    if not here.any():
        most = grid[:, 2:].max(axis=0)
        hint = f"the grid ends at {most[0]},{most[1]}, counted from 0"
        raise one_problem("spike", f"{along},{down}", "is no place of the grid", hint)
    return np.asarray(amount * np.where(sign < 0, -1.0, 1.0) * here)


def grid_of(result: xr.Dataset) -> Int:
    """(n_source, 4) fault, component, along strike and down dip of each source."""
    names = ("source_fault", "source_component", "source_patch")
    columns = [np.asarray(result[name].values, dtype=np.int64) for name in names]
    return np.column_stack(columns)


def sign_of(result: xr.Dataset) -> Int:
    """(n_source,) 1 where slip is nowhere negative, -1 where nowhere positive."""
    lower, upper = bounds_of(result)
    return np.where(lower >= 0, 1, np.where(upper <= 0, -1, 0))


def bounds_of(result: xr.Dataset) -> tuple[Float, Float]:
    """(n_source,) m each; infinite where there is none, or where rakes are bounded."""
    if "slip_bounds" not in result:
        free = np.full(result.sizes["source"], np.inf)
        return -free, free
    lower, upper = np.asarray(result["slip_bounds"].values, dtype=np.float64).T
    return lower, upper


def restore(result: xr.Dataset, slip: Float, seed: int | None = None) -> Float:
    """Slip that the inversion finds where this slip is the truth.

    With the weights of the result. Without bounds it is R a, R the resolution matrix;
    with errors a draw from N(R a, R C) where C is the covariance of the estimate, as
    R C is what errors of the data alone leave in it. Bounds leave what is nearest to
    that in the metric of C^-1, which is what the bounded inversion itself finds.

    Parameters
    ----------
    result : of an inversion, with its matrices.
    slip : (n_source,) float64, m.
    seed : of errors with the covariance of the data's; None: data without errors.

    Raises
    ------
    SpecError
        Where the result holds no matrices.
    """
    missing = [name for name in MATRICES if name not in result]
    if missing:
        hint = "slip through time and over 2000 sources have none; else invert again"
        raise one_problem("result", missing[0], "is not in the result", hint)
    resolution, covariance = (
        np.asarray(result[name].values, dtype=np.float64) for name in MATRICES
    )
    found = resolution @ slip
    if seed is not None:
        errors = resolution @ covariance
        value, vector = np.linalg.eigh(0.5 * (errors + errors.T))
        noise = np.random.default_rng(seed).standard_normal(len(value))
        found = found + vector @ (np.sqrt(np.maximum(value, 0.0)) * noise)
    lower, upper = bounds_of(result)
    if not (np.isfinite(lower) | np.isfinite(upper)).any():
        return np.asarray(found)
    # C^-1 = T' T with T the inverse of the lower Cholesky factor of C
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    nearest: Any = lsq_linear(root, root @ found, (lower, upper), "bvls", tol=1e-12)
    return np.asarray(nearest.x)


def resolution_tests(
    result: xr.Dataset, tests: dict[str, Float], seed: int | None = None
) -> xr.Dataset:
    """Restore several slips.

    Parameters
    ----------
    tests : (n_source,) m each, by name.

    Returns
    -------
    Data set with ``test_slip`` and ``test_restored`` (test, source), m, and how alike
    they are: ``test_recovered``, the part of the slip that is found in its place,
    a' b / a' a of slip a and restored b.
    """
    slip = np.stack(list(tests.values()))
    restored = np.stack([restore(result, one, seed) for one in slip])
    power = (slip**2).sum(axis=1)
    share = (slip * restored).sum(axis=1) / np.where(power > 0, power, 1.0)
    return xr.Dataset(
        {
            "test_slip": (("test", "source"), slip, {"units": "m"}),
            "test_restored": (("test", "source"), restored, {"units": "m"}),
            "test_recovered": (("test",), share),
        },
        coords={"test": list(tests)},
        attrs={"errors": "none" if seed is None else f"drawn with seed {seed}"},
    )
