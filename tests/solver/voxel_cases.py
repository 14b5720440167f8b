"""Small grids of the tests of waves."""

import numpy as np

from afterslip_solver.waves.grid import Medium, VoxelGrid
from afterslip_solver.waves.record import Receivers

VP, VS, RHO = 6000.0, 3464.0, 2700.0


def rock(grid, vp=VP, vs=VS, rho=RHO):
    """The same rock everywhere."""
    nx, ny, nz = grid.shape
    one = np.ones((nz - 1, ny - 1, nx - 1), dtype=np.float32)
    mu, whole = rho * vs**2, rho * vp**2
    return Medium(np.float32(whole - 2 * mu) * one, np.float32(mu) * one, rho * one)


def varied(grid, seed=0, air=False):
    """Rock of random moduli, with a hole in it."""
    nx, ny, nz = grid.shape
    random = np.random.default_rng(seed)
    mu, ratio, rho = (
        random.uniform(low, high, (nz - 1, ny - 1, nx - 1))
        for low, high in ((1e10, 4e10), (0.5, 4.0), (2000.0, 3300.0))
    )
    lam = ratio * mu
    if air:
        for part in (lam, mu, rho):
            part[-1, 1:3, 1:3] = 0.0
    return Medium(*(part.astype(np.float32) for part in (lam, mu, rho)))


def box(shape, h=500.0):
    """A grid of so many nodes under the ground."""
    nx, ny, nz = shape
    return VoxelGrid(
        shape, (-0.5 * h * (nx - 1), -0.5 * h * (ny - 1), -h * (nz - 1)), h
    )


def at_nodes(grid, ijk):
    """Record nodes themselves, also below the ground."""
    ijk = np.asarray(ijk)
    weights = np.zeros((len(ijk), 16))
    weights[:, 0] = 1.0
    return Receivers(np.repeat(grid.node(ijk)[:, None], 16, axis=1), weights)


def host(array):
    """An array of any backend on the host."""
    return array.get() if hasattr(array, "get") else array
