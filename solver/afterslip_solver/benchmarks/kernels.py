"""The CUDA kernels on a model's mesh, beside the bandwidth of a copy in the same run.

Every product is checked against the element-by-element FP64 product on new random
input and a poisoned result. Times are medians. The baseline is the time that the bytes
which must move take at the copy's bandwidth; kernels that are bound by instructions
cannot reach it (docs/performance.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import bsr_array

from afterslip_common.record import Record, record
from afterslip_solver import backend as backends
from afterslip_solver.backend.base import LANES, Tets
from afterslip_solver.model import Float, Model, SolverSettings
from afterslip_solver.operators import Space
from afterslip_solver.operators.elasticity import assemble

# largest error of a product that counts as right, FP32 and FP64
_ALLOWED = {np.float32: 1e-6, np.float64: 1e-13}


def milliseconds(
    xp: Any,
    call: Callable[..., Any],
    *arguments: Any,
    repeats: int = 9,
    queued: int = 10,
) -> float:
    """Median time of a call on the device, of ``queued`` that wait for no host.

    Solves repeat launches from a graph. With an idle device before it a call would be
    given the time that the host takes to launch it.
    """
    for _ in range(3):
        call(*arguments)
    times = []
    for _ in range(repeats):
        begin, end = xp.cuda.Event(), xp.cuda.Event()
        begin.record()
        for _ in range(queued):
            call(*arguments)
        end.record()
        end.synchronize()
        times.append(xp.cuda.get_elapsed_time(begin, end) / queued)
    return float(np.median(times))


def copy_bandwidth(xp: Any) -> float:
    """Bytes per second, read and written, of a copy of 2 GB."""
    a = xp.ones(1 << 29, dtype=np.float32)
    b = xp.empty_like(a)
    return 2e3 * float(a.nbytes) / milliseconds(xp, xp.copyto, b, a)


def records(
    model: Model,
    slip: dict[str, Float],
    settings: SolverSettings,
    backend: str = "gpu",
) -> list[Record]:
    """Time products and smoothing steps on the GPU; slip and settings play no part.

    Raises
    ------
    BackendError
        If no CUDA device can be used.
    ArithmeticError
        If a product is wrong.
    """
    del slip, settings
    if backend == "cpu":
        raise backends.BackendError("the kernels that are measured are CUDA's")
    device: Any = backends.get("gpu")
    found: list[Record] = []
    # each kind of products has a numbering of its own
    kinds = {
        "_deterministic": backends.get("gpu", deterministic=True),
        "_elements": type(device)(stencils=False),
        "": device,
    }
    for word, one in kinds.items():
        bench = _Bench(model, one, word)
        bench.products()
        if word == "_elements":
            for lanes in (8, 16):
                bench.lanes(lanes)
        elif word == "":
            bench.coarse()
        found += bench.records
    return found


class _Bench:
    """Products of one backend, which name their metrics by its word."""

    def __init__(self, model: Model, backend: Any, word: str) -> None:
        self.backend, self.word = backend, word
        self.xp = self.backend.xp
        self.bandwidth = copy_bandwidth(self.xp)
        mesh, materials = model.mesh, model.materials
        numbering = self.backend.numbering(mesh.nodes, mesh.elements)
        self.space = space = Space.build(mesh, model.fixed, numbering)
        order = space.element_order
        self.moduli = materials.lam[order], materials.mu[order]
        self.unit = float(np.median(self.moduli[1]))
        arrays = (space.elements, space.gradients, space.volume)
        self.tets = Tets(*(self.backend.asarray(a) for a in arrays))
        self.free = self.backend.asarray(~space.fixed)[:, :, None]
        self.size = f"{len(space.elements)} elements, {3 * space.n_node} unknowns"
        self.records: list[Record] = []

    def say(self, metric: str, value: float, size: float, note: str) -> None:
        """Keep a time in ms beside that of copying ``size`` bytes."""
        floor = 1e3 * size / self.bandwidth
        rate = f"copy {self.bandwidth / 1e12:.2f} TB/s"
        text = f"{self.size}, {note}; baseline: {size / 1e9:.2f} GB at {rate}"
        self.records.append(record(metric, value, "ms", floor, text))

    def vector(self, real: Any, lanes: int = LANES) -> Any:
        """Make a random field that is zero on fixed components."""
        rng = self.xp.random.default_rng(int(time.time()))
        u = rng.standard_normal((self.space.n_node, 3, lanes)) * self.free
        return u.astype(real)

    def check(self, found: Any, u: Any, real: Any) -> float:
        """Return the relative error of a product with the moduli over the unit."""
        lam, mu = (self.backend.asarray(m / self.unit) for m in self.moduli)
        error = 0.0
        for first in range(0, u.shape[2], LANES):
            lanes = slice(first, first + LANES)
            part = self.xp.ascontiguousarray(u[:, :, lanes].astype(np.float64))
            exact = self.backend.elastic_forces(self.tets, lam, mu, part) * self.free
            off = self.xp.linalg.norm((found[:, :, lanes] - exact).ravel())
            error = max(error, float(off / self.xp.linalg.norm(exact.ravel())))
        if not error < _ALLOWED[real]:
            message = f"a product in {np.dtype(real).name} is wrong: {error:.1e}"
            raise ArithmeticError(message)
        return error

    def products(self) -> None:
        """Time K u, b - K u and a smoothing step."""
        backend, word = self.backend, self.word
        lam, mu = (values / self.unit for values in self.moduli)
        for real, name in ((np.float32, "fp32"), (np.float64, "fp64")):
            matrix = backend.stiffness(self.space, lam, mu, real)
            u = self.vector(real)
            f = self.xp.full_like(u, np.nan)
            backend.multiply(matrix, u, f)
            note = f"four lanes, error {self.check(f, u, real):.1e}"
            moved = self.tables(np.dtype(real).itemsize) + u.nbytes + f.nbytes
            value = milliseconds(self.xp, backend.multiply, matrix, u, f)
            self.say(f"p2_apply_{name}{word}_ms", value, moved, note)
            if real is np.float64:
                continue
            if not word:
                note += ", this one by stencils in FP16 if refined three times"
            b = self.vector(real)
            inverse = self.xp.random.random((len(u), 3, 3), dtype=np.float32)
            value = milliseconds(self.xp, backend.residual, matrix, b, u, f)
            self.say(f"p2_residual_{name}{word}_ms", value, moved + b.nbytes, note)
            call = (matrix, inverse, b, u, 0.1, f)
            value = milliseconds(self.xp, backend.relax, *call)
            moved += b.nbytes + inverse.nbytes
            self.say(f"p2_chebyshev_{name}{word}_ms", value, moved, note)

    def lanes(self, lanes: int) -> None:
        """Time products with more right-hand sides; times are per four of them."""
        for real, name in ((np.float32, "fp32"), (np.float64, "fp64")):
            lam, mu = (values / self.unit for values in self.moduli)
            matrix = self.backend.wide_stiffness(self.space, lam, mu, real, lanes)
            u = self.vector(real, lanes)
            f = self.xp.full_like(u, np.nan)
            matrix.apply(u, f)
            error = self.check(f, u, real)
            value = milliseconds(self.xp, matrix.apply, u, f, repeats=7)
            share = LANES / lanes
            moved = self.tables(np.dtype(real).itemsize) + u.nbytes + f.nbytes
            note = f"{lanes} lanes, per four of them, error {error:.1e}"
            metric = f"p2_apply_{name}_{lanes}_lanes_ms"
            self.say(metric, value * share, moved * share, note)
            del matrix, u, f

    def tables(self, itemsize: int) -> float:
        """Bytes an element must bring: 12 local numbers, gradients and moduli."""
        return float(len(self.space.elements) * (24 + 11 * itemsize))

    def coarse(self) -> None:
        """Time the product of linear elements."""
        host = assemble(self.space, *self.moduli, order=1)
        n = len(host.indptr) - 1
        x = np.random.default_rng().standard_normal((n, 3, LANES)).astype(np.float32)
        on_device = self.backend.asarray(x)
        for store, name in ((np.float32, "fp32"), (np.float16, "fp16")):
            # in units that FP16 holds: this is a timing, the hierarchy scales rows
            data = (host.data / np.abs(host.data).max() * 100.0).astype(store)
            matrix = self.backend.blocks(host.indptr, host.indices, data, n)
            y = self.xp.full(x.shape, np.nan, dtype=np.float32)
            self.backend.multiply(matrix, on_device, y)
            exact = bsr_array((data.astype(np.float64), host.indices, host.indptr))
            expected = (exact @ x.reshape(-1, LANES).astype(np.float64)).reshape(
                x.shape
            )
            off = np.linalg.norm(self.backend.to_host(y) - expected)
            error = float(off / np.linalg.norm(expected))
            if not error < _ALLOWED[np.float32]:
                message = f"the product of linear elements is wrong: {error:.1e}"
                raise ArithmeticError(message)
            multiply = self.backend.multiply
            value = milliseconds(self.xp, multiply, matrix, on_device, y)
            size = len(host.indices) * (4 + 9 * np.dtype(store).itemsize)
            note = f"{n} rows, {len(host.indices)} blocks, four lanes, {error:.1e}"
            self.say(f"p1_spmm_{name}_ms", value, size + 2 * x.nbytes, note)
