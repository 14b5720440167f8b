"""Series of ground motion: one table of all stations, filtered to what is resolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.frame import Frame
from afterslip.readers.observations import Observations, read_observations
from afterslip.readers.rows import Sampled
from afterslip.schemas.observation import Series, Sigma

Float = NDArray[np.float64]
Int = NDArray[np.int64]

ORDER = 4
"""Of the Butterworth filter."""
SAMPLES_IN_PERIOD = 2.5
"""Of the highest frequency that a series is said to hold."""
# of a sampling, by which samples may be off their places
_UNEVEN = 1e-3
_LISTED = 5
# s; no instrument of ground motion samples faster
_SHORTEST = 1e-4


def lowpassed(values: Float, sampling: float, lowpass: float) -> Float:
    """Apply the filter of data and of Green's functions.

    A causal Butterworth filter of order 4, begun as if the first value had always
    been there: a constant stays as it is.

    Parameters
    ----------
    values : (..., n_sample) float64. sampling : s. lowpass : Hz, its corner.

    Returns
    -------
    (..., n_sample) float64.
    """
    from scipy.signal import butter, sosfilt, sosfilt_zi

    sections = butter(ORDER, lowpass, fs=1.0 / sampling, output="sos")
    state = sosfilt_zi(sections)
    shape = (len(sections), *([1] * (values.ndim - 1)), 2)
    begun = state.reshape(shape) * values[..., :1]
    return np.asarray(sosfilt(sections, values, axis=-1, zi=begun)[0])


def read_motion(
    content: bytes,
    frame: Frame,
    series: Series,
    sigma: Sigma | None = None,
    label: str = "observations",
) -> Observations:
    """Read series of ground motion, one line a station and sample.

    Columns: ``station``, a position, ``time_s`` (after the begin of slip),
    ``east,north,up`` in m or m/s and ``sigma_e,sigma_n,sigma_u`` of the same. With a
    filter the series is thinned to 2.5 samples in a period of its corner, at least.

    Parameters
    ----------
    sigma : standard deviations for fields that the file leaves empty, after the filter.

    Raises
    ------
    SpecError
        With the line of everything wrong: uneven samples, gaps in what is filtered.
    """
    found = read_observations(content, frame, sigma, 0.0, label)
    other = np.flatnonzero(found.kind != "gnss")
    if len(other):
        hint = "remove the column type, or series from the data set"
        place = f"{found.place(int(other[0]))}, column type"
        what = str(found.kind[other[0]])
        raise one_problem(place, what, "is no kind of ground motion", hint)
    order = np.lexsort((found.time, _numbers(found.name)))
    found = _taken(found, order)
    sampling = _sampling(found)
    sampled = Sampled(sampling)
    if series.lowpass is not None:
        found, sampled = _filtered(found, sampling, series.lowpass)
    kind = np.full(len(found), series.quantity)
    return replace(found, kind=kind, sampled=sampled)


def _numbers(names: tuple[str, ...]) -> Int:
    """(n,) positions of the stations in the order of the file."""
    number = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)


def _taken(found: Observations, rows: Int) -> Observations:
    """Return some entries in this order."""
    changed = {
        item.name: getattr(found, item.name)[rows]
        for item in fields(Observations)
        if isinstance(getattr(found, item.name), np.ndarray)
    }
    return replace(found, name=tuple(found.name[k] for k in rows), **changed)


def _stations(found: Observations) -> Iterator[Int]:
    """Yield the entries of each station, in the order of time."""
    number = _numbers(found.name)
    for station in range(int(number.max()) + 1):
        yield np.flatnonzero(number == station)


def _sampling(found: Observations) -> float:
    """Return the sampling of all stations, s.

    Raises
    ------
    SpecError
        A station has one sample, or times twice; or stations differ.
    """
    problems, steps = [], []
    for mine in _stations(found):
        step = np.diff(found.time[mine])
        name = found.name[mine[0]]
        if not len(step):
            hint = "give time_s and several samples, or leave series out"
            text = "has one sample, which is no series"
            problems.append(Problem(found.place(int(mine[0])), name, text, hint))
        elif step.min() < _SHORTEST:
            place = found.place(int(mine[int(step.argmin()) + 1]))
            text = "has a sample of this time already"
            if step.min() > 0.0:
                text = f"comes {step.min():.3g} s after another sample"
            problems.append(Problem(place, name, text, "write time_s in s"))
        else:
            steps.append((float(step.min()), int(mine[0])))
    if not problems:
        least, most = min(steps), max(steps)
        if most[0] > least[0] * (1.0 + _UNEVEN):
            text = f"is sampled in {most[0]:.4g} s, others in {least[0]:.4g} s"
            hint = "put them into data sets of their own, or sample them alike"
            place = found.place(most[1])
            problems.append(Problem(place, found.name[most[1]], text, hint))
    if problems:
        raise SpecError(problems[:_LISTED])
    return float(np.median([step for step, _ in steps]))


def _filtered(
    found: Observations, sampling: float, lowpass: float
) -> tuple[Observations, Sampled]:
    """Return filtered series with fewer samples, and how."""
    nyquist = 0.5 / sampling
    if lowpass >= nyquist:
        text = f"{lowpass:g} Hz"
        message = f"is not below half of the sampling rate, {nyquist:.4g} Hz"
        raise one_problem("series.lowpass", text, message, "leave it out, or lower it")
    every = max(1, int((1.0 + _UNEVEN) / (SAMPLES_IN_PERIOD * lowpass * sampling)))
    problems, left = [], []
    values = found.displacement.copy()
    for mine in _stations(found):
        problems += list(_uneven(found, mine, sampling))
        values[mine] = lowpassed(values[mine].T, sampling, lowpass).T
        left.append(mine[::every])
    if problems:
        raise SpecError(problems[:_LISTED])
    thinned = _taken(replace(found, displacement=values), np.concatenate(left))
    return thinned, Sampled(sampling, every, lowpass)


def _uneven(found: Observations, mine: Int, sampling: float) -> Iterator[Problem]:
    """Say why a series cannot be filtered."""
    time, name = found.time[mine], found.name[mine[0]]
    hint = "fill the gap, or cut the series there"
    if time[0] > sampling * (1.0 + _UNEVEN):
        text = f"begins at {time[0]:.4g} s, and the filter needs it from 0 on"
        yield Problem(found.place(int(mine[0])), name, text, "add what came before")
    step = np.diff(time)
    gap = np.flatnonzero(np.abs(step - sampling) > _UNEVEN * sampling)
    if len(gap):
        row = int(mine[gap[0] + 1])
        text = f"comes {step[gap[0]]:.4g} s after the sample before, not {sampling:.4g}"
        yield Problem(found.place(row), name, text, hint)
    there = np.isfinite(found.displacement[mine])
    partly = there.any(axis=0) & ~there.all(axis=0)
    if partly.any():
        row = int(mine[np.flatnonzero(~there[:, np.flatnonzero(partly)[0]])[0]])
        yield Problem(found.place(row), name, "has an empty field in a series", hint)
