"""Second-order tetrahedra, element by element, four lanes at once.

The gradient of a quadratic field is linear inside a straight-sided element, so
its values at the four vertices say everything, and integrals of products of two
such fields are exact with the vertex rule: int f g = V/20 sum_ab (1 + d_ab) f_a g_b.
At vertex a the gradient is 3 u_a (x) G_a + sum_{b != a} (4 u_ab - u_b) (x) G_b, with
G_b the gradient of the barycentric coordinate b.

Deviatoric tensors are stored as five components in an orthonormal basis, so that
their double contraction is a plain sum of products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.mesh.tables.midpoints import MID

R2 = 1.0 / np.sqrt(2.0)
R6 = 1.0 / np.sqrt(6.0)


@compiled()
def gather(u: Any, nodes: Any, local: Any) -> None:
    """Values of one element's nodes (10, 3, lane); loops compile faster than slices."""
    for n in range(10):
        for i in range(3):
            for m in range(LANES):
                local[n, i, m] = u[nodes[n], i, m]


@compiled()
def scatter(f: Any, nodes: Any, factor: float, out: Any) -> None:
    """Add factor f (10, 3, lane) to the element's nodes of out."""
    for n in range(10):
        for i in range(3):
            for m in range(LANES):
                out[nodes[n], i, m] += factor * f[n, i, m]


@compiled(fastmath={"contract"})
def vertex_gradients(u: Any, g: Any, out: Any) -> None:
    """Gradients (4, 3, 3, lane) of local values u (10, 3, lane)."""
    for a in range(4):
        for i in range(3):
            for d in range(3):
                for m in range(LANES):
                    out[a, i, d, m] = 3.0 * u[a, i, m] * g[a, d]
        for b in range(4):
            if b == a:
                continue
            n = MID[a, b]
            for i in range(3):
                for m in range(LANES):
                    w = 4.0 * u[n, i, m] - u[b, i, m]
                    for d in range(3):
                        out[a, i, d, m] += w * g[b, d]


@compiled(fastmath={"contract"})
def vertex_forces(s: Any, g: Any, f: Any) -> None:
    """Local forces (10, 3, lane) of vertex stresses s (4, 3, 3, lane): transpose."""
    for n in range(10):
        for i in range(3):
            for m in range(LANES):
                f[n, i, m] = 0.0
    for a in range(4):
        for b in range(4):
            n = MID[a, b]
            for i in range(3):
                for m in range(LANES):
                    t = (
                        s[a, i, 0, m] * g[b, 0]
                        + s[a, i, 1, m] * g[b, 1]
                        + s[a, i, 2, m] * g[b, 2]
                    )
                    if a == b:
                        f[a, i, m] += 3.0 * t
                    else:
                        f[n, i, m] += 4.0 * t
                        f[b, i, m] -= t


@compiled(fastmath={"contract"})
def weigh(s: Any, volume: float) -> None:
    """Replace vertex values by V/20 (s_a + sum_b s_b), the exact integration rule."""
    w = volume / 20.0
    for i in range(3):
        for d in range(3):
            for m in range(LANES):
                t = s[0, i, d, m] + s[1, i, d, m] + s[2, i, d, m] + s[3, i, d, m]
                for a in range(4):
                    s[a, i, d, m] = w * (s[a, i, d, m] + t)


@compiled(fastmath={"contract"})
def elastic_stress(s: Any, lam: float, mu: float) -> None:
    """Replace displacement gradients by the stress of an isotropic solid."""
    for a in range(4):
        for m in range(LANES):
            p = lam * (s[a, 0, 0, m] + s[a, 1, 1, m] + s[a, 2, 2, m])
            for i in range(3):
                s[a, i, i, m] = p + 2.0 * mu * s[a, i, i, m]
                for d in range(i):
                    t = mu * (s[a, i, d, m] + s[a, d, i, m])
                    s[a, i, d, m] = t
                    s[a, d, i, m] = t


@compiled()
def add_elastic_forces(
    elements: Any, g: Any, volume: Any, lam: Any, mu: Any, u: Any, out: Any
) -> None:
    """Out += K u without a matrix; u and out are (n_node, 3, lane)."""
    local = np.empty((10, 3, LANES))
    s = np.empty((4, 3, 3, LANES))
    f = np.empty((10, 3, LANES))
    for e in range(elements.shape[0]):
        gather(u, elements[e], local)
        vertex_gradients(local, g[e], s)
        elastic_stress(s, lam[e], mu[e])
        weigh(s, volume[e])
        vertex_forces(s, g[e], f)
        scatter(f, elements[e], 1.0, out)


@compiled()
def add_offset_forces(
    which: Any,
    elements: Any,
    g: Any,
    volume: Any,
    lam: Any,
    mu: Any,
    offsets: Any,
    factor: float,
    out: Any,
) -> None:
    """Out += factor K_e s_e for the elements ``which``, offsets (n, 10, 3, lane)."""
    s = np.empty((4, 3, 3, LANES))
    f = np.empty((10, 3, LANES))
    for k in range(which.shape[0]):
        e = which[k]
        vertex_gradients(offsets[k], g[e], s)
        elastic_stress(s, lam[e], mu[e])
        weigh(s, volume[e])
        vertex_forces(s, g[e], f)
        scatter(f, elements[e], factor, out)


@compiled(fastmath={"contract"})
def deviator(s: Any, out: Any, add: bool) -> None:
    """Five deviatoric components (4, 5, lane) of the symmetric part of s."""
    for a in range(4):
        for m in range(LANES):
            xx, yy, zz = s[a, 0, 0, m], s[a, 1, 1, m], s[a, 2, 2, m]
            c0 = R2 * (xx - yy)
            c1 = R6 * (2.0 * zz - xx - yy)
            c2 = R2 * (s[a, 0, 1, m] + s[a, 1, 0, m])
            c3 = R2 * (s[a, 1, 2, m] + s[a, 2, 1, m])
            c4 = R2 * (s[a, 0, 2, m] + s[a, 2, 0, m])
            if add:
                out[a, 0, m] += c0
                out[a, 1, m] += c1
                out[a, 2, m] += c2
                out[a, 3, m] += c3
                out[a, 4, m] += c4
            else:
                out[a, 0, m] = c0
                out[a, 1, m] = c1
                out[a, 2, m] = c2
                out[a, 3, m] = c3
                out[a, 4, m] = c4


@compiled()
def strain(elements: Any, g: Any, u: Any, out: Any) -> None:
    """Deviatoric strain (n_elem, 4, 5, lane) of u (n_node, 3, lane)."""
    local = np.empty((10, 3, LANES))
    s = np.empty((4, 3, 3, LANES))
    for e in range(elements.shape[0]):
        gather(u, elements[e], local)
        vertex_gradients(local, g[e], s)
        deviator(s, out[e], False)


@compiled(fastmath={"contract"})
def blend_strain(
    elements: Any, g: Any, u: Any, keep: Any, state: Any, gain: Any, out: Any
) -> None:
    """Out = keep state + gain strain(u), element by element; out may be state."""
    local = np.empty((10, 3, LANES))
    s = np.empty((4, 3, 3, LANES))
    d = np.empty((4, 5, LANES))
    for e in range(elements.shape[0]):
        gather(u, elements[e], local)
        vertex_gradients(local, g[e], s)
        deviator(s, d, False)
        for a in range(4):
            for k in range(5):
                for m in range(LANES):
                    old = keep[e] * state[e, a, k, m]
                    out[e, a, k, m] = old + gain[e] * d[a, k, m]


@compiled(fastmath={"contract", "reassoc"})
def energy_dot(energy: Any, a: Any, b: Any) -> Any:
    """Lane-wise sum over rows of energy (a_v b_v + (sum_v a_v) (sum_v b_v))."""
    total = np.zeros(LANES)
    for e in range(a.shape[0]):
        for m in range(LANES):
            s = 0.0
            for k in range(5):
                p = q = 0.0
                for v in range(4):
                    x, y = a[e, v, k, m], b[e, v, k, m]
                    p += x
                    q += y
                    s += x * y
                s += p * q
            total[m] += energy[e] * s
    return total


@compiled()
def add_offset_strain(which: Any, g: Any, offsets: Any, out: Any) -> None:
    """Add the strain of local offsets (n, 10, 3, lane) to rows ``which`` of out."""
    s = np.empty((4, 3, 3, LANES))
    for k in range(which.shape[0]):
        vertex_gradients(offsets[k], g[which[k]], s)
        deviator(s, out[which[k]], True)


@compiled(fastmath={"contract"})
def add_divergence(
    elements: Any, g: Any, volume: Any, factor: Any, stress: Any, out: Any
) -> None:
    """Out += int B^T (factor stress): transpose of ``strain`` with the mass rule.

    ``factor`` (n_elem,) multiplies ``stress`` (n_elem, 4, 5, lane).
    """
    s = np.empty((4, 3, 3, LANES))
    f = np.empty((10, 3, LANES))
    for e in range(elements.shape[0]):
        w = factor[e]
        for a in range(4):
            for m in range(LANES):
                c0 = w * R2 * stress[e, a, 0, m]
                c1 = w * R6 * stress[e, a, 1, m]
                s[a, 0, 0, m] = c0 - c1
                s[a, 1, 1, m] = -c0 - c1
                s[a, 2, 2, m] = 2.0 * c1
                s[a, 0, 1, m] = s[a, 1, 0, m] = w * R2 * stress[e, a, 2, m]
                s[a, 1, 2, m] = s[a, 2, 1, m] = w * R2 * stress[e, a, 3, m]
                s[a, 0, 2, m] = s[a, 2, 0, m] = w * R2 * stress[e, a, 4, m]
        weigh(s, volume[e])
        vertex_forces(s, g[e], f)
        scatter(f, elements[e], 1.0, out)
