"""Steps of waves on one core beside Devito's staggered finite differences.

    pip install devito
    python benchmarks/wave_peers.py [--nodes N] [--json FILE]

Both in FP32, each by the time of its thread, in one run. Devito (Louboutin and others,
2019, Geosci. Model Dev. 12, 1165) marches velocity and stress of one source at a time,
of fourth order; ours four sources at once. Rates count nodes times sources times steps;
how many nodes a wavelength takes is in docs/waves.md.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from afterslip_common.record import Record, record, write_records
from afterslip_solver.backend.base import LANES
from afterslip_solver.benchmarks import waves

ORDER, STEPS, REPEATS = 4, 10, 5
VP, VS, RHO, EDGE = 6000.0, 3464.0, 2700.0, 400.0


def finite_differences(nodes: int) -> Any:
    """Return an operator that takes steps of a pulse, and its velocity."""
    import devito

    devito.configuration["log-level"] = "ERROR"
    devito.configuration["language"] = "C"
    extent = (EDGE * (nodes - 1),) * 3
    grid = devito.Grid(shape=(nodes,) * 3, extent=extent, dtype=np.float32)
    how = {"grid": grid, "space_order": ORDER, "time_order": 1}
    v = devito.VectorTimeFunction(name="v", **how)
    stress = devito.TensorTimeFunction(name="s", **how)
    mu = RHO * VS**2
    lam = RHO * VP**2 - 2.0 * mu
    # materials of each node, as any model has them
    parts = []
    for name, value in (("lam", lam), ("mu", mu), ("b", 1.0 / RHO)):
        parts.append(devito.Function(name=name, grid=grid, space_order=ORDER))
        parts[-1].data[:] = value
    dt = grid.stepping_dim.spacing
    motion = devito.Eq(v.forward, v + dt * parts[2] * devito.div(stress))
    strain = devito.grad(v.forward) + devito.grad(v.forward).transpose(inner=False)
    dilation = devito.diag(devito.div(v.forward))
    rates = parts[0] * dilation + parts[1] * strain
    law = devito.Eq(stress.forward, stress + dt * rates)
    axis = np.arange(nodes) - 0.5 * nodes
    away = sum(a**2 for a in np.meshgrid(axis, axis, axis, indexing="ij"))
    v[0].data[:] = np.exp(-away / 20.0)
    return devito.Operator([motion, law]), v


def peer(nodes: int) -> float:
    """Seconds of a step, whose pulse must stay finite and move."""
    step, v = finite_differences(nodes)
    dt = 0.4 * EDGE / VP
    step.apply(time_M=1, dt=dt)
    times = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        step.apply(time_M=STEPS - 1, dt=dt)
        times.append((time.thread_time() - begin) / STEPS)
    moved = np.abs(v[1].data[:]).max()
    if not 0.0 < moved < np.inf:
        raise ArithmeticError(f"the peer's largest velocity is {moved}")
    return float(np.median(times))


def ours(nodes: int) -> float:
    """Seconds of a step of four sources."""
    steps = waves.begun(waves.prepared("cpu", "fp32", nodes))
    return waves.seconds(steps, STEPS, REPEATS)


def compared(nodes: int) -> list[Record]:
    """Return the rates of both."""
    mine, other = ours(nodes), peer(nodes)
    rates = [LANES * nodes**3 / mine / 1e9, nodes**3 / other / 1e9]
    text = (
        f"node-source steps of {nodes}^3 nodes, FP32, one core: "
        f"{1e3 * mine:.3g} ms for {LANES} sources; baseline: Devito's staggered "
        f"differences of order {ORDER}, {1e3 * other:.3g} ms for one"
    )
    return [record("voxel_step_beside_devito_gnodes", rates[0], "G/s", rates[1], text)]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    write_records(options.json, compared(options.nodes))


if __name__ == "__main__":
    main()
