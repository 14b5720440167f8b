"""Motion of the ground over layers after a moment tensor at a point.

By frequency and wavenumber, as in Thomson-Haskell theory (Aki & Richards 2002,
Quantitative Seismology, chapter 7), but with the amplitudes of all layers in one linear
system of waves that decay away from their own boundary, which stays well conditioned.
Frequencies are complex, so that the transform over time is not of what comes after its
end and integrals over wavenumber meet no poles (Bouchon 1981, Bull. Seism. Soc. Am. 71,
959-971). The integral over directions is the trapezoidal rule, so that no Bessel
functions are needed. Nothing is shared with the voxels.

In axes 1 along the wave, 2 across and 3 up all is exp(i (omega t + k x_1)); a source
-d_j (M_ij delta) makes jumps of motion and traction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_common.source_time import SourceTime
from afterslip_solver.model import Float

Complex = NDArray[Any]
# what is left at the end of the window, which is this many durations long
_LEFT, _WINDOW = 1e-5, 2.0
# wavenumbers: steps of 2 pi over the distance that the fastest wave goes in a window,
# times this; up to this over the depth of the source
_FINER, _REACH = 1.5, 16.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


@dataclass(frozen=True, slots=True)
class ElasticLayer:
    """One layer: depth of its bottom in m, inf for the half-space; m/s; kg/m3.

    With quality factors ``qp`` and ``qs`` speeds are those of the frequency
    ``reference``, Hz, and Q is the same at all frequencies.
    """

    bottom: float
    vp: Any
    vs: Any
    rho: float
    qp: float = np.inf
    qs: float = np.inf
    reference: float = 1.0

    @property
    def mu(self) -> Any:
        """Pa."""
        return self.rho * self.vs**2

    @property
    def lam(self) -> Any:
        """Pa."""
        return self.rho * (self.vp**2 - 2.0 * self.vs**2)

    def at(self, omega: complex) -> ElasticLayer:
        """Return the layer with the speeds of an angular frequency, rad/s.

        A modulus of constant Q is a power of i omega (Kjartansson 1979, J. Geophys.
        Res. 84, 4737-4748).
        """
        ratio = 1j * omega / (2.0 * np.pi * self.reference)
        power = [np.arctan(1.0 / q) / np.pi for q in (self.qp, self.qs)]
        # the phase speed at the reference is the given one
        size = [np.cos(0.5 * np.pi * p) for p in power]
        vp, vs = (
            speed * share * ratio**exponent
            for speed, share, exponent in zip(
                (self.vp, self.vs), size, power, strict=True
            )
        )
        return replace(self, vp=vp, vs=vs)


def layered_waves(
    points: Float,
    times: Float,
    depth: float,
    moment: Float,
    growth: SourceTime,
    layers: Sequence[ElasticLayer],
) -> Float:
    """Displacement of the ground by a source below the origin.

    Parameters
    ----------
    points : (n_point, 2) m. times : (n_time,) s, evenly from 0.
    depth : m, of the source, at no bottom of a layer.
    moment : (3, 3) N m, x, y, z up. growth : of the moment, from 0 to 1.

    Returns
    -------
    (n_point, n_time, 3) float64, m.
    """
    dt = float(times[1] - times[0])
    count = int(_WINDOW * len(times))
    decay = np.log(1.0 / _LEFT) / (count * dt)
    omega = 2.0 * np.pi * np.fft.rfftfreq(count, dt) - 1j * decay
    fastest = max(layer.vp for layer in layers)
    far = float(np.hypot(*points.T).max())
    step = 2.0 * np.pi / (_FINER * (far + fastest * count * dt))
    slowest = min(layer.vs for layer in layers)
    # frequencies that the source does not have need no wavenumbers
    spectrum = _spectrum(omega, growth)
    used = np.abs(spectrum) > 1e-7 * np.abs(spectrum[1:]).max()
    most = _REACH / depth + float(omega.real[used].max()) / slowest
    k: Float = np.asarray(step * (np.arange(int(most / step)) + 0.5))
    kernels = [_directions(k, point, moment) for point in points]
    found: Any = np.zeros((len(points), len(omega), 3), dtype=np.complex128)
    for number in np.flatnonzero(used):
        at = complex(omega[number])
        surface = _responses(k, at, depth, [layer.at(at) for layer in layers])
        for point, kernel in enumerate(kernels):
            total = np.einsum("ks,ksc->c", surface, kernel) * step / (2 * np.pi) ** 2
            found[point, number] = total * spectrum[number]
    series = np.fft.irfft(found, count, axis=1)[:, : len(times)] / dt
    return np.asarray(series * np.exp(decay * times)[:, None])


def _spectrum(omega: Complex, growth: SourceTime) -> Complex:
    """Transform of the share of moment: by parts, since it ends at 1 and not at 0."""
    end = 1.2 * growth.end
    t, weight = 0.5 * end * (_NODES + 1.0), 0.5 * end * _WEIGHTS
    lacking = (1.0 - growth(t)) * weight
    # 1/(i omega) is the transform of a step
    return np.asarray(1.0 / (1j * omega) - np.exp(-1j * np.outer(omega, t)) @ lacking)


def _directions(k: Float, point: Float, moment: Float) -> Complex:
    """(k, 8, 3) sums over directions that make motion of `_responses`.

    Those are u1 and u3 of each of M11, M13, M33, then u2 of M12 and of M23.
    """
    r = float(np.hypot(*point))
    count = int(2 * k[-1] * r) + 60
    angle = 2.0 * np.pi * np.arange(count) / count
    one = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    two = np.stack([-np.sin(angle), np.cos(angle), 0.0 * angle], axis=1)
    up = np.array([0.0, 0.0, 1.0])
    m11 = np.einsum("ai,ij,aj->a", one, moment, one)
    m12 = np.einsum("ai,ij,aj->a", one, moment, two)
    m13, m23 = one @ moment @ up, two @ moment @ up
    m33 = np.full(count, moment[2, 2])
    ups = np.tile(up, (count, 1))
    parts = [m[:, None] * axis for m in (m11, m13, m33) for axis in (one, ups)]
    parts += [m12[:, None] * two, m23[:, None] * two]
    phase = (
        np.exp(1j * np.outer(k, one[:, :2] @ point)) * (k * 2 * np.pi / count)[:, None]
    )
    return np.asarray(np.einsum("ka,sac->ksc", phase, np.array(parts)))


def _responses(
    k: Float, omega: complex, depth: float, layers: Sequence[ElasticLayer]
) -> Complex:
    """(k, 8) motion of the ground by each part of the tensor; see `_directions`."""
    # the source's layer is cut at the source
    cut: list[ElasticLayer] = []
    source, top = 0, 0.0
    for layer in layers:
        if top < depth < layer.bottom:
            cut.append(replace(layer, bottom=depth))
            source = len(cut) - 1
        cut.append(layer)
        top = layer.bottom
    own, ik = cut[source], 1j * k
    whole = own.lam + 2.0 * own.mu
    jumps = np.zeros((len(k), 4, 3), dtype=np.complex128)
    jumps[:, 2, 0] = ik
    jumps[:, 0, 1] = 1.0 / own.mu
    jumps[:, 1, 2] = 1.0 / whole
    jumps[:, 2, 2] = -ik * own.lam / whole
    across = np.zeros((len(k), 2, 2), dtype=np.complex128)
    across[:, 1, 0] = ik
    across[:, 0, 1] = 1.0 / own.mu
    plane = _solved([_plane(layer, k, omega) for layer in cut], cut, jumps, source)
    shear = _solved([_across(layer, k, omega) for layer in cut], cut, across, source)
    pairs = plane.transpose(0, 2, 1).reshape(len(k), 6)
    return np.concatenate([pairs, shear[:, 0]], axis=1)


# motion and tractions of waves (k, state, wave), first those that decay downwards, then
# upwards; and what they decay with (k, wave of one direction), 1/m
Waves = tuple[Complex, Complex]


def _plane(layer: ElasticLayer, k: Float, omega: complex) -> Waves:
    """P and SV: (u1, u3, s13, s33)."""
    ik, lam, mu = 1j * k, layer.lam, layer.mu
    rates = [np.sqrt(k**2 - (omega / v) ** 2 + 0j) for v in (layer.vp, layer.vs)]
    found = np.zeros((len(k), 4, 4), dtype=np.complex128)
    for n, sign in enumerate((1.0, -1.0)):
        for kind, rate in enumerate(rates):
            d = sign * rate
            u1, u3 = (ik, d) if kind == 0 else (-d, ik)
            s13, s33 = mu * (d * u1 + ik * u3), lam * ik * u1 + (lam + 2 * mu) * d * u3
            found[:, :, 2 * n + kind] = np.stack([u1, u3, s13, s33], axis=1)
    return found, np.stack(rates, axis=1)


def _across(layer: ElasticLayer, k: Float, omega: complex) -> Waves:
    """SH: (u2, s23)."""
    rate = np.sqrt(k**2 - (omega / layer.vs) ** 2 + 0j)
    one = np.ones(len(k))
    found = np.stack([one, layer.mu * rate, one, -layer.mu * rate], axis=1)
    return found.reshape(len(k), 2, 2).transpose(0, 2, 1), rate[:, None]


def _solved(
    waves: list[Waves], layers: list[ElasticLayer], jumps: Any, source: int
) -> Complex:
    """(k, motion, part) of the ground; jumps are at the bottom of layer ``source``."""
    n_k, states, parts = jumps.shape
    half, n = states // 2, len(layers)
    size = states * n - half
    matrix = np.zeros((n_k, size, size), dtype=np.complex128)
    right = np.zeros((n_k, size, parts), dtype=np.complex128)
    top = 0.0
    for number, (layer, (vectors, rates)) in enumerate(zip(layers, waves, strict=True)):
        first = states * number
        last = number == n - 1
        through = np.exp(-rates * (0.0 if last else layer.bottom - top))
        # those that decay downwards are 1 at the top, the others 1 at the bottom
        above, below = vectors.copy(), vectors.copy()
        above[:, :, half:] *= through[:, None]
        below[:, :, :half] *= through[:, None]
        own = slice(first, first + (half if last else states))
        if number == 0:
            matrix[:, :half, own] = above[:, half:]
        else:
            rows = slice(half + states * (number - 1), half + states * number)
            matrix[:, rows, own] = -above[:, :, : own.stop - own.start]
        if not last:
            rows = slice(half + first, half + first + states)
            matrix[:, rows, own] = below
            if number == source:
                right[:, rows] = jumps
        top = layer.bottom
    # tractions are of another size than motion
    scale = np.abs(matrix).max(axis=2, keepdims=True)
    amplitude = np.linalg.solve(matrix / scale, right / scale)
    vectors, rates = waves[0]
    ground = vectors[:, :half].copy()
    ground[:, :, half:] *= np.exp(-rates * layers[0].bottom)[:, None]
    return np.asarray(np.einsum("kiw,kwp->kip", ground, amplitude[:, :states]))
