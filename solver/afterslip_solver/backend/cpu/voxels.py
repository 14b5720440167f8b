"""Steps of elastic waves on voxels, the element operator factorised, in four lanes.

The eight corner values of a component are turned into sums and differences along the
axes (a Walsh transform: 24 additions), in which the stiffness of an isotropic voxel
couples at most three values; the transpose brings forces back to the corners. Number n
of a transformed value has bit i where it is a difference along axis i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from afterslip_solver.backend.base import LANES
from afterslip_solver.backend.cpu.lanes import fma, load, splat, store, zeros_of
from afterslip_solver.jit.compiling import compiled


@compiled()
def transform(a: Any) -> Any:
    """Return sums and differences of corner values; a corner's bits are x, y, z."""
    b0, b1, b2, b3 = a[0] + a[1], a[1] - a[0], a[2] + a[3], a[3] - a[2]
    b4, b5, b6, b7 = a[4] + a[5], a[5] - a[4], a[6] + a[7], a[7] - a[6]
    c0, c1, c2, c3 = b0 + b2, b1 + b3, b2 - b0, b3 - b1
    c4, c5, c6, c7 = b4 + b6, b5 + b7, b6 - b4, b7 - b5
    upper = (c4 - c0, c5 - c1, c6 - c2, c7 - c3)
    return (c0 + c4, c1 + c5, c2 + c6, c3 + c7, *upper)


@compiled()
def transposed(f: Any) -> Any:
    """Return what the transpose of `transform` makes of eight values."""
    b0, b1, b2, b3 = f[0] - f[4], f[1] - f[5], f[2] - f[6], f[3] - f[7]
    b4, b5, b6, b7 = f[0] + f[4], f[1] + f[5], f[2] + f[6], f[3] + f[7]
    c0, c1, c2, c3 = b0 - b2, b1 - b3, b0 + b2, b1 + b3
    c4, c5, c6, c7 = b4 - b6, b5 - b7, b4 + b6, b5 + b7
    upper = (c4 - c5, c4 + c5, c6 - c7, c6 + c7)
    return (c0 - c1, c0 + c1, c2 - c3, c2 + c3, *upper)


@compiled()
def stress(x: Any, y: Any, z: Any, zero: Any, m: Any) -> Any:
    """Return forces of transformed displacements, transformed.

    Parameters
    ----------
    x, y, z : eight values of each component.
    m : lam, 2 mu, mu, then B_lam lam, B_mu mu, 3 B_mu mu, and what multiplies number 7.
    """
    tr = m[0] * (x[1] + y[2] + z[4])
    xy, xz, yz = m[2] * (x[2] + y[1]), m[2] * (x[4] + z[1]), m[2] * (y[4] + z[2])
    # of a twist about each axis
    twist = x[6] + y[5] + z[3]
    a, b, c = y[3] + z[5], x[3] + z[6], x[5] + y[6]
    fx = (
        zero, fma(m[1], x[1], tr), xy, fma(m[5], x[3], m[3] * b),
        xz, fma(m[5], x[5], m[3] * c), m[4] * (twist + x[6]), m[6] * x[7],
    )  # fmt: skip
    fy = (
        zero, xy, fma(m[1], y[2], tr), fma(m[5], y[3], m[3] * a),
        yz, m[4] * (twist + y[5]), fma(m[5], y[6], m[3] * c), m[6] * y[7],
    )  # fmt: skip
    fz = (
        zero, xz, yz, m[4] * (twist + z[3]),
        fma(m[1], z[4], tr), fma(m[5], z[5], m[3] * a), fma(m[5], z[6], m[3] * b),
        m[6] * z[7],
    )  # fmt: skip
    return fx, fy, fz


@compiled()
def corners(u: Any, first: Any, row: Any, plane: Any) -> Any:
    """Return eight corner values of a component; distances in entries of the array."""
    a, b = first + row, first + plane
    c = a + plane
    return (
        load(u, first), load(u, first + LANES), load(u, a), load(u, a + LANES),
        load(u, b), load(u, b + LANES), load(u, c), load(u, c + LANES),
    )  # fmt: skip


@compiled()
def spread(force: Any, first: Any, row: Any, f: Any) -> None:
    """Add four corner values to a plane of forces."""
    a = first + row
    store(force, first, load(force, first) + f[0])
    store(force, first + LANES, load(force, first + LANES) + f[1])
    store(force, a, load(force, a) + f[2])
    store(force, a + LANES, load(force, a + LANES) + f[3])


@compiled()
def coefficients(lam: Any, mu: Any, w: Any) -> Any:
    """Return what multiplies the transformed values of a voxel, in all lanes."""
    one, two = lam * w[0], mu * w[0]
    sides, shear = one * w[1], two * w[2]
    last = sides * w[1] + shear * w[2] * w[4]
    three = shear + shear + shear
    return (
        splat(one), splat(two + two), splat(two), splat(sides), splat(shear),
        splat(three), splat(last),
    )  # fmt: skip


@compiled()
def relax(x: Any, y: Any, z: Any, at: Any, size: Any, lost: Any, zener: Any) -> Any:
    """Return the stress that a voxel's memory takes away, and go on with the memory.

    The strain s that has relaxed follows tau ds/dt + s = strain. What is stored is
    decay s + (1 - decay) / 2 strain of the last step, to which half of the new strain
    comes: the trapezoidal rule with the exact decay.

    Parameters
    ----------
    at, size : of this voxel in the memory, and entries between its six values.
    lost : of lam and mu. zener : memory, and decay of this voxel.
    """
    memory, decay = zener
    half = splat(lost[2] * (lost[3] - decay))
    remain = splat(decay)
    strain = (x[1], y[2], z[4], x[2] + y[1], x[4] + z[1], y[4] + z[2])
    xx = fma(half, strain[0], load(memory, at))
    yy = fma(half, strain[1], load(memory, at + size))
    zz = fma(half, strain[2], load(memory, at + 2 * size))
    xy = fma(half, strain[3], load(memory, at + 3 * size))
    xz = fma(half, strain[4], load(memory, at + 4 * size))
    yz = fma(half, strain[5], load(memory, at + 5 * size))
    store(memory, at, fma(remain, xx, half * strain[0]))
    store(memory, at + size, fma(remain, yy, half * strain[1]))
    store(memory, at + 2 * size, fma(remain, zz, half * strain[2]))
    store(memory, at + 3 * size, fma(remain, xy, half * strain[3]))
    store(memory, at + 4 * size, fma(remain, xz, half * strain[4]))
    store(memory, at + 5 * size, fma(remain, yz, half * strain[5]))
    one, two = splat(lost[0]), splat(lost[1])
    trace, twice = one * (xx + yy + zz), two + two
    return (
        fma(twice, xx, trace), fma(twice, yy, trace), fma(twice, zz, trace),
        two * xy, two * xz, two * yz,
    )  # fmt: skip


@compiled()
def attenuate(
    x: Any, y: Any, z: Any, forces: Any, place: Any, w: Any, n: Any, zener: Any
) -> Any:
    """Return forces of a voxel less those of its strain that has relaxed.

    Parameters
    ----------
    place : k, j, i. Others: see `layer`.
    """
    memory, lost_lam, lost_mu, decay = zener
    k, j, i = place
    size = (n[0] - 1) * (n[1] - 1) * (n[2] - 1) * LANES
    at = ((k * (n[1] - 1) + j) * (n[0] - 1) + i) * LANES
    lost = (lost_lam[k, j, i] * w[0], lost_mu[k, j, i] * w[0], w[5], w[6])
    own = memory, decay[i % 2 + 2 * (j % 2) + 4 * (k % 2)]
    t = relax(x, y, z, at, size, lost, own)
    a, b, c = forces
    return (
        (a[0], a[1] - t[0], a[2] - t[3], a[3], a[4] - t[4], a[5], a[6], a[7]),
        (b[0], b[1] - t[3], b[2] - t[1], b[3], b[4] - t[5], b[5], b[6], b[7]),
        (c[0], c[1] - t[4], c[2] - t[5], c[3], c[4] - t[2], c[5], c[6], c[7]),
    )


@compiled()
def layer(
    u: Any, lam: Any, mu: Any, w: Any, force: Any, k: Any, n: Any, zener: Any
) -> None:
    """Add the forces of the voxels between planes k and k + 1.

    Parameters
    ----------
    lam, mu : (ny - 1, nx - 1) Pa. zener : see `march`.
    force : (2, 3, ny nx, lane), planes of even and odd number.
    n : (nx, ny, nz).
    """
    row, plane = n[0] * LANES, n[0] * n[1] * LANES
    whole = plane * n[2]
    low, high = k % 2 * 3 * plane, (k + 1) % 2 * 3 * plane
    zero = zeros_of(u, 4)
    for j in range(n[1] - 1):
        for i in range(n[0] - 1):
            if mu[j, i] == 0.0:
                continue  # air
            at = j * row + i * LANES
            first = k * plane + at
            x = transform(corners(u, first, row, plane))
            y = transform(corners(u, first + whole, row, plane))
            z = transform(corners(u, first + 2 * whole, row, plane))
            m = coefficients(lam[j, i], mu[j, i], w)
            fx, fy, fz = stress(x, y, z, zero, m)
            if zener[2].shape[0]:
                forces = fx, fy, fz
                fx, fy, fz = attenuate(x, y, z, forces, (k, j, i), w, n, zener)
            fx, fy, fz = transposed(fx), transposed(fy), transposed(fz)
            spread(force, low + at, row, fx[:4])
            spread(force, high + at, row, fx[4:])
            spread(force, low + plane + at, row, fy[:4])
            spread(force, high + plane + at, row, fy[4:])
            spread(force, low + 2 * plane + at, row, fz[:4])
            spread(force, high + 2 * plane + at, row, fz[4:])


@compiled()
def finish(u: Any, v: Any, coef: Any, dt: Any, force: Any, k: Any, n: Any) -> None:
    """Move plane k by its forces, and clear them."""
    count = n[0] * n[1]
    zero, step = zeros_of(u, 4), splat(dt)
    for c in range(3):
        for p in range(count):
            node = c * count * n[2] + k * count + p
            here = (k % 2 * 3 * count + c * count + p) * LANES
            faster = load(v, node * LANES) - splat(coef[node]) * load(force, here)
            store(v, node * LANES, faster)
            store(u, node * LANES, fma(step, faster, load(u, node * LANES)))
            store(force, here, zero)


@compiled()
def march(
    u: Any, v: Any, coef: Any, lam: Any, mu: Any, w: Any, force: Any, n: Any, zener: Any
) -> None:
    """V -= coef K u, then u += dt v, in place: planes below are not read any more.

    Parameters
    ----------
    u, v : (3, n_node, lane), of one precision, and of it all arrays but lam and mu.
    coef : (3 n_node,) dt over the mass. lam, mu : (nz - 1, ny - 1, nx - 1) float32.
    w : h / 16, the weights of the transverse modes, dt, 4, 1/2 and 1.
    force : (2, 3, ny nx, lane), zero, and zero again afterwards.
    n : (nx, ny, nz).
    zener : memory (6, n_voxel, lane); moduli that relax, like lam and mu, empty where
        none do; what of a strain remains after a step in voxels of each of 8 kinds.
    """
    for k in range(n[2] - 1):
        layer(u, lam[k], mu[k], w, force, k, n, zener)
        finish(u, v, coef, w[3], force, k, n)
    finish(u, v, coef, w[3], force, n[2] - 1, n)


@compiled()
def damp(u: Any, v: Any, rows: Any, remain: Any, pull: Any) -> None:
    """V = remain v - pull u in the rows (component and node) of a list."""
    for r in range(rows.shape[0]):
        at = rows[r] * LANES
        slower = splat(remain[r]) * load(v, at)
        store(v, at, slower - splat(pull[r]) * load(u, at))


@compiled()
def push(v: Any, coef: Any, rows: Any, loads: Any, moment: Any) -> None:
    """V += coef moment load in the rows of a list; loads are (n, lane)."""
    for r in range(rows.shape[0]):
        at = rows[r] * LANES
        factor = splat(coef[rows[r]] * moment)
        store(v, at, fma(factor, load(loads, r * LANES), load(v, at)))


def weights(h: float, beta_lam: float, beta_mu: float, dt: float, real: Any) -> Any:
    """Return what `march` calls w."""
    return np.array([h / 16.0, beta_lam, beta_mu, dt, 4.0, 0.5, 1.0], dtype=real)
