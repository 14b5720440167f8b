"""The CUDA kernels on a real unstructured mesh, beside the device's copy bandwidth.

    python benchmarks/kernels.py --mesh MESH.npz --refine 3 [--solve] [--json FILE]

The mesh file holds vertices (n, 3) m, cells (m, 4), lam and mu (m,) Pa of a coarse
mesh, such as the one of examples/tohoku2011; it is refined uniformly here. Every
product is checked against the element-by-element FP64 product on new random input and
a poisoned result. Times are medians; the baseline is the time that the bytes which
must move take at the bandwidth of a copy measured in the same run.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from scipy.sparse import bsr_array

from afterslip_solver import backend as backends
from afterslip_solver.backend.base import Tets
from afterslip_solver.krylov import pcg
from afterslip_solver.mesh.numbering import second_order
from afterslip_solver.mesh.refine import refine_uniformly
from afterslip_solver.multigrid import build
from afterslip_solver.operators import Elasticity, Space
from afterslip_solver.operators.elasticity import assemble

SHAPE = (3, 4)


def milliseconds(call: Any, repeats: int = 15) -> float:
    """Median time of a call on the device."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return float(np.median(times))


def copy_bandwidth() -> float:
    """Bytes per second, read and written, of a copy of 4 GB."""
    a = cupy.ones(1 << 30, dtype=np.float32)
    b = cupy.empty_like(a)
    return 2e3 * a.nbytes / milliseconds(lambda: cupy.copyto(b, a))


class Bench:
    """One mesh, its operators and the records of what was measured."""

    def __init__(self, mesh: Path, refine: int) -> None:
        self.begin = time.perf_counter()
        self.backend: Any = backends.get("gpu")
        self.bandwidth = copy_bandwidth()
        self.records: list[dict[str, Any]] = []
        data = np.load(mesh)
        tags = np.zeros(len(data["cells"]), dtype=np.int64)
        cells = data["cells"].astype(np.int64)
        fine = second_order(data["vertices"], cells, tags, ("box",))
        for _ in range(refine):
            fine, _, _ = refine_uniformly(fine, {}, {})
        self.say("refined")
        fixed = self.held(fine.nodes)
        numbering = self.backend.numbering(fine.nodes, fine.elements)
        self.space = space = Space.build(fine, fixed, numbering)
        self.say("numbered")
        parent = space.element_order // 8**refine
        lam, mu = data["lam"][parent], data["mu"][parent]
        arrays = (space.elements, space.gradients, space.volume)
        self.tets = Tets(*(self.backend.asarray(a) for a in arrays))
        self.operator = Elasticity(self.backend, space, self.tets, lam, mu)
        self.unit = float(np.median(mu))
        self.single = self.operator.stiffness(self.unit, np.float32)
        self.size = f"{len(space.elements)} elements, {3 * space.n_node} unknowns"
        self.say(f"ready: {self.size}")

    @staticmethod
    def held(nodes: Any) -> Any:
        """Rollers on the sides, a fixed bottom."""
        low, high = nodes.min(axis=0), nodes.max(axis=0)
        near = 1e-9 * (high - low)
        fixed = (nodes < low + near) | (nodes > high - near)
        fixed[:, 2] = False
        fixed[nodes[:, 2] < low[2] + near[2]] = True
        return fixed

    def say(self, what: str) -> None:
        """Print a phase with its time."""
        print(f"[{time.perf_counter() - self.begin:6.1f} s] {what}", flush=True)

    def record(self, metric: str, value: float, baseline: float, note: str) -> None:
        """Keep and print a figure."""
        entry = {"metric": metric, "value": value, "unit": metric.rsplit("_", 1)[1]}
        entry |= {"baseline": baseline, "ratio": value / baseline, "note": note}
        self.records.append(entry)
        self.say(f"{metric} {value:.4g} baseline {baseline:.4g} {note}")

    def floor(self, size: float) -> float:
        """Milliseconds that so many bytes take."""
        return 1e3 * size / self.bandwidth

    def apply(self, real: Any) -> None:
        """P2 products in one precision."""
        n = self.space.n_node
        fast = real == np.float32
        matrix = self.single if fast else self.operator.matrix
        free = self.operator.free
        u = cupy.random.default_rng(int(time.time())).standard_normal((n, *SHAPE))
        u = (u * free).astype(real)
        f = cupy.full((n, *SHAPE), np.nan, dtype=real)
        self.backend.multiply(matrix, u, f)
        lam, mu = self.operator.lam, self.operator.mu
        expected = self.backend.elastic_forces(self.tets, lam, mu, u.astype(np.float64))
        expected *= free
        found = f.astype(np.float64) * (self.unit if fast else 1.0)
        error = float(cupy.linalg.norm(found - expected) / cupy.linalg.norm(expected))
        value = milliseconds(lambda: self.backend.multiply(matrix, u, f))
        note = f"{self.size}, four lanes, error {error:.1e}; baseline: copy"
        size = matrix.bytes + u.nbytes + f.nbytes
        name = "fp32" if fast else "fp64"
        self.record(f"p2_apply_{name}_ms", value, self.floor(size), note)
        if not error < (1e-6 if fast else 1e-13):
            raise SystemExit(f"P2 apply in {name} is wrong: {error:.1e}")
        if fast:
            self.step(matrix, u, f)

    def step(self, matrix: Any, u: Any, f: Any) -> None:
        """Time one step of the P2 smoother."""
        inverse = cupy.random.random((self.space.n_node, 3, 3), dtype=np.float32)
        b, d = cupy.ones_like(u), cupy.ones_like(u)
        value = milliseconds(
            lambda: self.backend.chebyshev(matrix, inverse, b, u, d, 0.5, 0.1, f)
        )
        size = matrix.bytes + 5 * u.nbytes + inverse.nbytes
        note = f"{self.size}, four lanes; baseline: copy"
        self.record("p2_chebyshev_fp32_ms", value, self.floor(size), note)

    def product(self) -> None:
        """P1 block matrix times four lanes."""
        host = assemble(self.space, *self.operator.moduli, order=1)
        self.say("assembled P1")
        n = len(host.indptr) - 1
        data = (host.data / self.unit).astype(np.float32)
        matrix = self.backend.blocks(host.indptr, host.indices, data, n)
        x = np.random.default_rng().standard_normal((n, *SHAPE)).astype(np.float32)
        y = cupy.full(x.shape, np.nan, dtype=np.float32)
        on_device = cupy.asarray(x)
        self.backend.multiply(matrix, on_device, y)
        exact = bsr_array((data.astype(np.float64), host.indices, host.indptr))
        expected = (exact @ x.reshape(-1, 4).astype(np.float64)).reshape(x.shape)
        error = np.linalg.norm(cupy.asnumpy(y) - expected) / np.linalg.norm(expected)
        value = milliseconds(lambda: self.backend.multiply(matrix, on_device, y))
        size = len(host.indices) * 40 + 2 * x.nbytes
        note = f"{n} rows, {len(host.indices)} blocks, four lanes, error {error:.1e}"
        self.record("p1_spmm_fp32_ms", value, self.floor(size), note)
        if not error < 1e-6:
            raise SystemExit(f"P1 product is wrong: {error:.1e}")

    def solve(self) -> None:
        """Elastic solve of four lanes from zero."""
        cycle = build(self.operator)
        self.say(f"hierarchy of {len(cycle.levels) + 1} levels")
        shape = (self.space.n_node, *SHAPE)
        f = cupy.random.default_rng(3).standard_normal(shape) * self.operator.free
        result = pcg(self.operator, cycle, f)
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        result = pcg(self.operator, cycle, f)
        cupy.cuda.Device().synchronize()
        value = time.perf_counter() - begin
        out = cupy.empty_like(f)
        norm = np.ones(4)
        once = milliseconds(lambda: cycle.apply(f, norm, out), 5)
        product = milliseconds(lambda: self.operator.apply(f, out), 5)
        note = (
            f"{self.size}, four lanes, random forces, {result.iterations} iterations "
            f"to {result.relative.max():.1e} ({result.outcome}); cycle {once:.2f} ms; "
            "baseline: products and cycles alone"
        )
        alone = result.iterations * (once + product) / 1e3
        self.record("group_solve_s", value, alone, note)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=3)
    parser.add_argument("--solve", action="store_true")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    bench = Bench(options.mesh, options.refine)
    tasks = [lambda: bench.apply(np.float32), lambda: bench.apply(np.float64)]
    tasks.append(bench.product)
    if options.solve:
        tasks.append(bench.solve)
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    name = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    bandwidth = f"copy {bench.bandwidth / 1e12:.2f} TB/s"
    for task in tasks:
        task()
        record = {"device": f"{name.strip()}", "commit": options.commit}
        record |= {"bandwidth": bandwidth, "records": bench.records}
        if options.json:
            options.json.write_text(json.dumps(record, indent=1) + "\n")
    print(bandwidth)


if __name__ == "__main__":
    main()
