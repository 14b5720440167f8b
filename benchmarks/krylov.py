"""What other Krylov methods could gain: the spectrum that conjugate gradients meet.

    python benchmarks/krylov.py --mesh MESH.npz --refine 1

MESH.npz is written by `trench.py`. Prints the Ritz values of the preconditioned matrix
for the slip of four unit sources, and the iterations of conjugate gradients for these
sources together (block: O'Leary 1980) and with the vectors that belong to the smallest
Ritz values of another group taken out (deflation: Saad et al. 2000). On the CPU.
"""

import argparse
from pathlib import Path

import numpy as np
from trench import FAULT, load

from afterslip_solver.greens import Prepared, prepare
from afterslip_solver.krylov import pcg
from afterslip_solver.model import Float, SolverSettings
from afterslip_solver.sources import CLAMPED, slip_of, unit_sources

TOLERANCE = 1e-8
STEPS = 14
VECTORS = 4


def gram(a: Float, b: Float) -> Float:
    """Inner products of all lanes with all lanes."""
    return np.einsum("nij,nik->jk", a, b)


def dots(a: Float, b: Float) -> Float:
    """Inner products lane by lane."""
    return np.einsum("nij,nij->j", a, b)


class System:
    """K and its preconditioner on the CPU, four lanes at a time."""

    def __init__(self, made: Prepared) -> None:
        system = made.elastic.system
        self._operator, self._cycle = system.operator, system.cycle

    def times(self, u: Float) -> Float:
        """K u, any number of lanes that is a multiple of four."""
        out = np.zeros_like(u)
        for k in range(0, u.shape[2], 4):
            part = np.zeros((*u.shape[:2], 4))
            self._operator.apply(np.ascontiguousarray(u[:, :, k : k + 4]), part)
            out[:, :, k : k + 4] = part
        return out

    def smoothed(self, r: Float, size: Float) -> Float:
        """M^-1 r."""
        out = np.zeros_like(r)
        self._cycle.apply(r, size, out)
        return out


def block(system: System, f: Float) -> int:
    """Count iterations of all lanes in one space of directions."""
    norm = np.sqrt(dots(f, f))
    r, p, q, pq = f.copy(), None, None, None
    for count in range(100):
        relative = np.sqrt(dots(r, r)) / norm
        if relative.max() <= TOLERANCE:
            return count
        z = system.smoothed(r, relative * norm)
        p = z if p is None else z - p @ np.linalg.solve(pq, gram(q, z))
        p = p / np.sqrt(dots(p, p))
        q = system.times(np.ascontiguousarray(p))
        pq = gram(p, q)
        r = r - q @ np.linalg.solve(pq, gram(p, r))
    raise ArithmeticError("block conjugate gradients did not converge")


def ritz(system: System, f: Float) -> tuple[list[Float], Float]:
    """Ritz values of each lane, and vectors that belong to the smallest ones."""
    r, p, old = f.copy(), None, None
    alphas, betas, basis = [], [], []
    for _ in range(STEPS):
        z = system.smoothed(r, np.sqrt(dots(r, r)))
        rz = dots(r, z)
        basis.append(z / np.sqrt(rz))
        betas.append(np.zeros_like(rz) if p is None else rz / old)
        p = z if p is None else z + betas[-1] * p
        q = system.times(p)
        alphas.append(rz / dots(p, q))
        r, old = r - alphas[-1] * q, rz
    values, vectors = [], []
    for lane in range(f.shape[2]):
        a, b = (np.array(v)[:, lane] for v in (alphas, betas))
        diagonal = 1.0 / a + np.concatenate([[0.0], b[1:] / a[:-1]])
        beside = np.sqrt(b[1:]) / a[:-1]
        found, s = np.linalg.eigh(
            np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        )
        values.append(found)
        lanes = np.stack([v[:, :, lane] for v in basis], axis=2)
        vectors.append(lanes @ s[:, :VECTORS])
    return values, np.concatenate(vectors, axis=2)


def deflated(system: System, f: Float, w: Float) -> int:
    """Count iterations with the space of ``w`` solved exactly and left out."""
    kw = system.times(w)
    size, turn = np.linalg.eigh(gram(w, kw))
    turn = turn / np.sqrt(size)
    w, kw = w @ turn, kw @ turn
    norm = np.sqrt(dots(f, f))
    r, p, old = f - kw @ gram(w, f), None, None
    for count in range(100):
        relative = np.sqrt(dots(r, r)) / norm
        if relative.max() <= TOLERANCE:
            return count
        z = system.smoothed(r, relative * norm)
        rz = dots(r, z)
        z = z - w @ gram(kw, z)
        p = z if p is None else z + rz / old * p
        q = system.times(p)
        r, old = r - rz / dots(p, q) * q, rz
    raise ArithmeticError("deflated conjugate gradients did not converge")


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mesh", type=Path, required=True)
    parser.add_argument("--refine", type=int, default=1)
    options = parser.parse_args()
    model, slip = load(options.mesh, options.refine)
    made = prepare(model, SolverSettings(times=(), until=0.0), "cpu")
    system = System(made)

    def force(values: Float) -> Float:
        return made.elastic.load({FAULT: values})

    f = force(slip[FAULT])
    fault = model.faults[FAULT]
    others = [
        slip_of(source, fault)
        for source in unit_sources(fault, 12, 5, edges=CLAMPED)[:4]
    ]
    operator, cycle = made.elastic.system.operator, made.elastic.system.cycle
    alone = pcg(operator, cycle, f, tolerance=TOLERANCE).iterations
    values, _ = ritz(system, f)
    _, vectors = ritz(system, force(np.stack(others, axis=2)))
    print(f"{made.n_unknowns} unknowns, four lanes to {TOLERANCE}")
    for lane, found in enumerate(values):
        print(f"Ritz values of lane {lane}: {np.array2string(found, precision=3)}")
    print(f"iterations: {alone}, block {block(system, f)}", end=", ")
    print(f"{vectors.shape[2]} deflated {deflated(system, f, vectors)}")


if __name__ == "__main__":
    main()
