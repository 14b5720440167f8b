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
from afterslip_solver.backend.cpu.lanes import (
    fma,
    load,
    splat,
    store,
    widened,
    zeros_of,
)
from afterslip_solver.jit.compiling import compiled
from afterslip_solver.mesh.tables.midpoints import MID

R2 = 1.0 / np.sqrt(2.0)
R6 = 1.0 / np.sqrt(6.0)


@compiled()
def gather(u: Any, nodes: Any, local: Any) -> None:
    """Values of one element's nodes (10, 3, lane)."""
    for n in range(10):
        for i in range(3):
            store(local, LANES * (3 * n + i), load(u, LANES * (3 * nodes[n] + i)))


@compiled()
def scatter(f: Any, nodes: Any, factor: float, out: Any) -> None:
    """Add factor f (10, 3, lane) to the element's nodes of out."""
    scale = splat(factor)
    for n in range(10):
        for i in range(3):
            at = LANES * (3 * nodes[n] + i)
            store(out, at, fma(scale, load(f, LANES * (3 * n + i)), load(out, at)))


@compiled()
def vertex_gradients(u: Any, g: Any, out: Any) -> None:
    """Gradients (4, 3, 3, lane) of local values u (10, 3, lane)."""
    three, four = splat(3.0), splat(4.0)
    for a in range(4):
        for i in range(3):
            w = three * load(u, LANES * (3 * a + i))
            x, y, z = w * splat(g[a, 0]), w * splat(g[a, 1]), w * splat(g[a, 2])
            for b in range(4):
                if b == a:
                    continue
                end, middle = load(u, LANES * (3 * b + i)), LANES * (3 * MID[a, b] + i)
                w = four * load(u, middle) - end
                x = fma(w, splat(g[b, 0]), x)
                y = fma(w, splat(g[b, 1]), y)
                z = fma(w, splat(g[b, 2]), z)
            at = 3 * LANES * (3 * a + i)
            store(out, at, x)
            store(out, at + LANES, y)
            store(out, at + 2 * LANES, z)


@compiled()
def vertex_forces(s: Any, g: Any, f: Any) -> None:
    """Local forces (10, 3, lane) of vertex stresses s (4, 3, 3, lane): transpose."""
    three, four = splat(3.0), splat(4.0)
    for n in range(30):
        store(f, LANES * n, zeros_of(f, 4))
    for a in range(4):
        for i in range(3):
            at = 3 * LANES * (3 * a + i)
            x, y, z = load(s, at), load(s, at + LANES), load(s, at + 2 * LANES)
            for b in range(4):
                t = x * splat(g[b, 0])
                t = fma(y, splat(g[b, 1]), t)
                t = fma(z, splat(g[b, 2]), t)
                end = LANES * (3 * b + i)
                if a == b:
                    store(f, end, fma(three, t, load(f, end)))
                    continue
                store(f, end, load(f, end) - t)
                middle = LANES * (3 * MID[a, b] + i)
                store(f, middle, fma(four, t, load(f, middle)))


@compiled()
def weigh(s: Any, volume: float) -> None:
    """Replace vertex values by V/20 (s_a + sum_b s_b), the exact integration rule."""
    w, vertex = splat(volume / 20.0), 9 * LANES
    for k in range(0, vertex, LANES):
        t = load(s, k) + load(s, k + vertex)
        t += load(s, k + 2 * vertex)
        t += load(s, k + 3 * vertex)
        for a in range(4):
            at = k + a * vertex
            store(s, at, w * (load(s, at) + t))


@compiled()
def elastic_stress(s: Any, lam: float, mu: float) -> None:
    """Replace displacement gradients by the stress of an isotropic solid."""
    first, second, twice = splat(lam), splat(mu), splat(2.0 * mu)
    for a in range(4):
        at = 9 * LANES * a
        p = load(s, at) + load(s, at + 4 * LANES) + load(s, at + 8 * LANES)
        p *= first
        for i in range(3):
            k = at + 4 * i * LANES
            store(s, k, fma(twice, load(s, k), p))
            for d in range(i):
                k, m = at + (3 * i + d) * LANES, at + (3 * d + i) * LANES
                t = second * (load(s, k) + load(s, m))
                store(s, k, t)
                store(s, m, t)


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


@compiled()
def deviator(s: Any, out: Any, add: bool) -> None:
    """Five deviatoric components (4, 5, lane) of the symmetric part of s."""
    half, sixth, two = splat(R2), splat(R6), splat(2.0)
    for a in range(4):
        k, o = 9 * LANES * a, 5 * LANES * a
        x, y = load(s, k), load(s, k + 4 * LANES)
        c0 = half * (x - y)
        c1 = sixth * (two * load(s, k + 8 * LANES) - x - y)
        c2 = half * (load(s, k + LANES) + load(s, k + 3 * LANES))
        c3 = half * (load(s, k + 5 * LANES) + load(s, k + 7 * LANES))
        c4 = half * (load(s, k + 2 * LANES) + load(s, k + 6 * LANES))
        if add:
            c0 += load(out, o)
            c1 += load(out, o + LANES)
            c2 += load(out, o + 2 * LANES)
            c3 += load(out, o + 3 * LANES)
            c4 += load(out, o + 4 * LANES)
        store(out, o, c0)
        store(out, o + LANES, c1)
        store(out, o + 2 * LANES, c2)
        store(out, o + 3 * LANES, c3)
        store(out, o + 4 * LANES, c4)


@compiled()
def strain(elements: Any, g: Any, u: Any, out: Any) -> None:
    """Deviatoric strain (n_elem, 4, 5, lane) of u (n_node, 3, lane)."""
    local = np.empty((10, 3, LANES))
    s = np.empty((4, 3, 3, LANES))
    for e in range(elements.shape[0]):
        gather(u, elements[e], local)
        vertex_gradients(local, g[e], s)
        deviator(s, out[e], False)


@compiled()
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
        old, new, at = splat(keep[e]), splat(gain[e]), 20 * LANES * e
        for k in range(0, 20 * LANES, LANES):
            was = old * widened(load(state, at + k))
            store(out, at + k, fma(new, load(d, k), was))


@compiled()
def energy_dot(energy: Any, a: Any, b: Any) -> Any:
    """Lane-wise sum over rows of energy (a_v b_v + (sum_v a_v) (sum_v b_v))."""
    total, vertex = zeros_of(energy, 4), 5 * LANES
    for e in range(a.shape[0]):
        s = zeros_of(energy, 4)
        for k in range(4 * vertex * e, 4 * vertex * e + vertex, LANES):
            p = q = zeros_of(energy, 4)
            for at in range(k, k + 4 * vertex, vertex):
                x, y = widened(load(a, at)), widened(load(b, at))
                p += x
                q += y
                s = fma(x, y, s)
            s = fma(p, q, s)
        total = fma(splat(energy[e]), s, total)
    out = np.empty(LANES)
    store(out, 0, total)
    return out


@compiled()
def add_offset_strain(which: Any, g: Any, offsets: Any, out: Any) -> None:
    """Add the strain of local offsets (n, 10, 3, lane) to rows ``which`` of out."""
    s = np.empty((4, 3, 3, LANES))
    for k in range(which.shape[0]):
        vertex_gradients(offsets[k], g[which[k]], s)
        deviator(s, out[which[k]], True)


@compiled()
def add_divergence(
    elements: Any, g: Any, volume: Any, factor: Any, stress: Any, out: Any
) -> None:
    """Out += int B^T (factor stress): transpose of ``strain`` with the mass rule.

    ``factor`` (n_elem,) multiplies ``stress`` (n_elem, 4, 5, lane).
    """
    s = np.empty((4, 3, 3, LANES))
    f = np.empty((10, 3, LANES))
    zero, two = zeros_of(out, 4), splat(2.0)
    for e in range(elements.shape[0]):
        half, sixth = splat(factor[e] * R2), splat(factor[e] * R6)
        for a in range(4):
            o, k = 5 * LANES * (4 * e + a), 9 * LANES * a
            c0 = half * widened(load(stress, o))
            c1 = sixth * widened(load(stress, o + LANES))
            store(s, k, c0 - c1)
            store(s, k + 4 * LANES, zero - c0 - c1)
            store(s, k + 8 * LANES, two * c1)
            # of components xy, yz and xz
            _store_twice(s, k, 1, 3, half * widened(load(stress, o + 2 * LANES)))
            _store_twice(s, k, 5, 7, half * widened(load(stress, o + 3 * LANES)))
            _store_twice(s, k, 2, 6, half * widened(load(stress, o + 4 * LANES)))
        weigh(s, volume[e])
        vertex_forces(s, g[e], f)
        scatter(f, elements[e], 1.0, out)


@compiled(inline="always")
def _store_twice(s: Any, k: int, one: int, other: int, value: Any) -> None:
    store(s, k + one * LANES, value)
    store(s, k + other * LANES, value)
