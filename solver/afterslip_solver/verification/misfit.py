"""How far series are from others, in envelope and in phase.

Time-frequency misfits of Kristekova, Kristek, Moczo & Day (2006, Bull. Seism. Soc. Am.
96, 1836-1850), single-valued and globally normalised: of wavelet transforms W the
envelope misfit is the 2-norm of |W| - |W_ref| over that of |W_ref|, and the phase
misfit that of |W_ref| arg(W / W_ref) / pi.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afterslip_solver.model import Float

# of the Morlet wavelet, and frequencies of a transform
_OMEGA0, _COUNT = 6.0, 60


def misfits(
    series: Float, reference: Float, dt: float, band: tuple[float, float]
) -> tuple[float, float]:
    """Return envelope and phase misfit of all components together.

    Parameters
    ----------
    series, reference : (n_component, n_sample). dt : s. band : Hz.
    """
    ours, theirs = (_transform(values, dt, band) for values in (series, reference))
    size = np.linalg.norm(theirs)
    phase = np.abs(theirs) * np.angle(ours * theirs.conj()) / np.pi
    envelope = np.abs(ours) - np.abs(theirs)
    return (
        float(np.linalg.norm(envelope) / size),
        float(np.linalg.norm(phase) / size),
    )


def _transform(values: Float, dt: float, band: tuple[float, float]) -> NDArray[Any]:
    """(n_component, n_frequency, n_sample) by Morlet wavelets."""
    count = values.shape[-1]
    # zeros behind: a transform is not of what comes round again
    length = 1 << int(np.ceil(np.log2(4 * count)))
    spectrum = np.fft.fft(values, length)[:, None]
    omega = 2.0 * np.pi * np.fft.fftfreq(length, dt)
    scale = _OMEGA0 / (2.0 * np.pi * np.geomspace(*band, _COUNT))[:, None]
    wavelet = np.exp(-0.5 * (scale * omega - _OMEGA0) ** 2) * (omega > 0.0)
    whole = np.fft.ifft(spectrum * np.sqrt(scale) * wavelet)
    return np.asarray(whole[..., :count])
