"""Steps of waves on a GPU beside other ways to take them, in one run.

    python benchmarks/wave_rivals.py [--nodes N] [--json FILE]

The conventional voxel method is the trilinear element in FP64, its dense matrices
applied element by element with atomic additions. Beside it are its products alone by
cuBLAS, which uses FP64 tensor cores, and finite differences of fourth order on a
staggered grid in FP32. All have four lanes and materials of each place, no sides and
no sources; products are checked first. As elements differ in how many of them a
wavelength takes, costs are compared at the same error of the speed of S waves: that of
the selective element with ten voxels a wavelength, vp/vs 1.73.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq

from afterslip_common.record import Record, record, write_records
from afterslip_solver.backend.base import LANES
from afterslip_solver.benchmarks import waves
from afterslip_solver.benchmarks.kernels import milliseconds
from afterslip_solver.waves.dispersion import courant, directions, phase_error
from afterslip_solver.waves.element import SCHEMES, element_matrix

SOURCE = Path(__file__).with_suffix(".cu")
VP_VS, POINTS, SHARE = 1.73, 10.0, 0.9
BLOCK = 128
# of staggered differences of fourth order: weights of the two differences, and the
# largest vp dt/h, of waves along a diagonal
WEIGHTS = 9.0 / 8.0, -1.0 / 24.0
STAGGERED = 1.0 / (np.sqrt(3.0) * (WEIGHTS[0] - WEIGHTS[1]))


def source(shape: tuple[int, int, int]) -> str:
    """Return the code of the kernels for grids of so many nodes along x, y, z."""
    lines = [f"#define N{a} {n}" for a, n in zip("XYZ", shape, strict=True)]
    scheme = SCHEMES["trilinear"]
    for name, moduli in (("A", (1.0, 0.0)), ("B", (0.0, 1.0))):
        rows = element_matrix(*moduli, 1.0, scheme)
        text = ",\n".join(
            "{" + ", ".join(f"{x:.17g}" for x in row) + "}" for row in rows
        )
        lines.append(f"__constant__ double {name}[24][24] = {{{text}}};")
    return "\n".join([*lines, SOURCE.read_text()])


def staggered_error(points: float) -> float:
    """Rms error of the speed of S waves over all directions, steps included."""
    theta = 2.0 * np.pi / points * directions()
    first, second = WEIGHTS
    slopes = first * np.sin(theta / 2.0) + second * np.sin(1.5 * theta)
    dt = SHARE * STAGGERED / VP_VS
    omega = 2.0 / dt * np.arcsin(dt * np.linalg.norm(slopes, axis=1))
    return float(np.sqrt(np.mean((omega * points / (2.0 * np.pi) - 1.0) ** 2)))


def as_costly() -> dict[str, float]:
    """Return how many node steps each takes for one of the selective element's.

    Nodes grow with the third power of those a wavelength, steps with the first, and as
    the largest step of its nodes shrinks.
    """
    selective = SCHEMES["selective"]
    wanted = phase_error(POINTS, VP_VS, selective, SHARE).s_rms
    limit = courant(VP_VS, selective)

    def trilinear(points: float) -> float:
        return phase_error(points, VP_VS, SCHEMES["trilinear"], SHARE).s_rms

    found = {}
    for name, error, largest in (
        ("conventional", trilinear, courant(VP_VS, SCHEMES["trilinear"])),
        ("staggered", staggered_error, STAGGERED),
    ):
        points = brentq(lambda p, error=error: error(p) - wanted, 3.0, 60.0)
        found[name] = float((points / POINTS) ** 4 * limit / largest)
        print(
            f"{name}: {points:.1f} points a wavelength, {found[name]:.3g} x node steps"
        )
    return found


class Conventional:
    """Steps by dense element matrices."""

    def __init__(self, cupy: Any, shape: tuple[int, int, int]) -> None:
        self.xp, self.shape = cupy, shape
        module = cupy.RawModule(code=source(shape), options=("-std=c++17",))
        self._kernel = module.get_function("conventional")
        self._add = cupy.ElementwiseKernel(
            "float64 coef, float64 dt, raw float64 mass",
            "float64 u, float64 v, float64 f",
            "v -= coef * mass[i / 4 % mass.size()] * f; u += dt * v; f = 0.0",
            "conventional_update",
        )

    def force(self, u: Any, lam: Any, mu: Any, h: float, f: Any) -> None:
        """Add K u to f."""
        threads = LANES * lam.size
        grid = (-(-threads // BLOCK),)
        self._kernel(grid, (BLOCK,), (u, lam, mu, np.float64(h), f))

    def check(self) -> float:
        """Return the error of a product with random materials."""
        random, xp = np.random.default_rng(7), self.xp
        size = tuple(n - 1 for n in self.shape[::-1])
        lam, mu = (random.uniform(0.5, 3.0, size).astype(np.float32) for _ in range(2))
        u = random.standard_normal((3, int(np.prod(self.shape)), LANES))
        f = xp.zeros(u.shape)
        self.force(*(xp.asarray(a) for a in (u, lam, mu)), 2.0, f)
        exact = waves.dense_force(self.shape, lam, mu, SCHEMES["trilinear"], u)
        error = np.linalg.norm(f.get() - exact) / np.linalg.norm(exact)
        if not error < 1e-14:
            raise ArithmeticError(f"the conventional product is wrong by {error:.1e}")
        return float(error)

    def seconds(self) -> float:
        """Time a whole step."""
        xp, count = self.xp, int(np.prod(self.shape))
        u = xp.random.standard_normal((3, count, LANES))
        v, f = xp.zeros_like(u), xp.zeros_like(u)
        moduli = [xp.ones(tuple(n - 1 for n in self.shape[::-1]), np.float32)] * 2
        mass = xp.ones(count)

        def step() -> None:
            self.force(u, *moduli, 1.0, f)
            self._add(1e-12, 1e-3, mass, u, v, f)

        return 1e-3 * milliseconds(xp, step)


def products(cupy: Any, count: int) -> float:
    """Seconds of both dense products of so many columns by cuBLAS in FP64."""
    scheme = SCHEMES["trilinear"]
    parts = [element_matrix(*m, 1.0, scheme) for m in ((1.0, 0.0), (0.0, 1.0))]
    both = cupy.asarray(np.concatenate(parts))
    u = cupy.random.standard_normal((24, count))
    out = cupy.empty((48, count))
    return 1e-3 * milliseconds(cupy, lambda: cupy.matmul(both, u, out=out))


class Staggered:
    """Steps of finite differences of fourth order."""

    def __init__(self, cupy: Any, shape: tuple[int, int, int]) -> None:
        self.xp, self.shape = cupy, shape
        module = cupy.RawModule(code=source(shape), options=("-std=c++17",))
        self._kernels = [module.get_function(n) for n in ("velocity", "stress")]

    def step(self, v: Any, s: Any, buoyancy: Any, lam: Any, mu: Any) -> None:
        """Take one step; materials are times the step over the spacing."""
        nx, ny, nz = self.shape
        how = (-(-LANES * nx // 64), -(-ny // 4), nz), (64, 4)
        self._kernels[0](*how, (v, s, buoyancy))
        self._kernels[1](*how, (s, v, lam, mu))

    def check(self) -> float:
        """Return the error of the speed of an S wave beside its dispersion relation."""
        xp, (nx, ny, nz), points = self.xp, self.shape, 12.0
        dt = SHARE * STAGGERED / VP_VS
        k, steps = 2.0 * np.pi / points, 4
        slope = sum(w * np.sin(k * m / 2) for w, m in zip(WEIGHTS, (1, 3), strict=True))
        omega = 2.0 / dt * np.arcsin(dt * slope)
        x = np.arange(nx)[:, None]
        v = np.zeros((3, nz, ny, nx, LANES), np.float32)
        s = np.zeros((6, nz, ny, nx, LANES), np.float32)
        # along x, moving along y: sigma_xy is half a spacing and half a step ahead
        v[1] = np.cos(k * x)
        s[3] = -np.cos(k * (x + 0.5) - omega * dt / 2.0)
        fields = [xp.asarray(a) for a in (v, s)]
        materials = [
            xp.full(nx * ny * nz, dt * value, np.float32)
            for value in (1.0, VP_VS**2 - 2.0, 1.0)
        ]
        for _ in range(steps):
            self.step(*fields, *materials)
        # what the edges, which stay, have not reached
        clear = slice(2 + 4 * steps, nx - 2 - 4 * steps)
        middle = fields[0][1].get()[nz // 2, ny // 2, clear]
        exact = np.cos(k * x - steps * omega * dt)[clear]
        error = float(np.abs(middle - exact).max())
        if not error < 1e-5:
            raise ArithmeticError(f"staggered differences are wrong by {error:.1e}")
        return error

    def seconds(self) -> float:
        """Time a whole step."""
        xp, count = self.xp, int(np.prod(self.shape))
        v = xp.random.standard_normal((3, count, LANES), dtype=np.float32)
        s = xp.zeros((6, count, LANES), np.float32)
        materials = [xp.full(count, 1e-6, np.float32) for _ in range(3)]
        return 1e-3 * milliseconds(xp, lambda: self.step(v, s, *materials))


def records(nodes: int) -> Iterator[Record]:
    """Time all on cubes of so many nodes along an axis."""
    import cupy

    costs, count = as_costly(), LANES * nodes**3
    cube = (nodes,) * 3
    rates = {}
    for precision in ("fp32", "fp64"):
        steps = waves.begun(waves.prepared("gpu", precision, nodes))
        rates[precision] = count / waves.seconds(steps, 20) / 1e9
        del steps
    for name, kind, small in (
        ("conventional", Conventional, (19, 11, 37)),
        ("staggered", Staggered, (64, 40, 40)),
    ):
        error = kind(cupy, small).check()
        rate = count / kind(cupy, cube).seconds() / 1e9
        for precision, mine in rates.items():
            yield record(
                f"voxel_{precision}_vs_{name}",
                costs[name] * mine / rate,
                "1",
                mine / rate,
                f"time over ours at the same error of S waves, {costs[name]:.3g} node "
                f"steps for one; of {nodes}^3 nodes {mine:.3g} G node-lane steps a "
                f"second beside {rate:.3g}, whose ratio is the baseline; error of its "
                f"check {error:.0e}",
            )
    columns = 1 << 24
    yield record(
        "fp64_tensor_gcols",
        columns / products(cupy, columns) / 1e9,
        "G/s",
        rates["fp64"],
        "columns (elements times lanes) a second of dense products by cuBLAS alone, "
        "nothing read from nodes or added to them; baseline: whole steps in FP64",
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    for item in records(options.nodes):
        print(item["metric"], f"{item['value']:.4g}", item["note"], flush=True)
        found.append(item)
        write_records(options.json, found)


if __name__ == "__main__":
    main()
