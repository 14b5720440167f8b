"""A small campaign of waves, its view, and what is drawn there."""

from __future__ import annotations

import re

import numpy as np

SPEC = """
name: NAME
physics: waves
model:
  frame: {kind: local}
  domain: {x: [-12, 12], y: [-12, 12], depth: 12}
  layers:
    - {name: cover, bottom: 2, vp: 5.0, vs: 3.0, rho: 2600}
    - {name: rock, bottom: 12, vp: 6.0, vs: 3.464, rho: 2700}
  faults:
    - name: main
      plane: {x: 0, y: 0, top: 2, strike: 30, dip: 60, length: 4, width: 3}
sources: {fault: main, along_strike: 2, down_dip: 1, shape: patch}
stations: {file: stations.csv}
waves:
  frequency: 0.5
  points_per_wavelength: 8
  duration: 16 s
  sampling: 0.4 s
  source_time: {kind: smooth_step, rise: 2.4 s}
  backend: cpu
"""
STATIONS = {"A": (3.0, 3.0), "B": (-2.0, 4.0), "C": (4.0, -1.5), "D": (-5.0, -4.0)}
DRAWN = "document.querySelectorAll('.record .trace').length > 0"
GROUND = "document.querySelectorAll('.map[aria-busy=false]').length > 0"


def choose(shown, label, value):
    """Choose from a list or type into a field, by its label, as a user does."""
    shown.run(
        "(() => { const label = [...document.querySelectorAll('label')]"
        f".find((l) => l.firstChild.textContent === {label!r});"
        "const field = label.querySelector('select, input');"
        "const option = [...(field.options ?? [])]"
        f".find((o) => o.textContent === {value!r});"
        f"field.value = option ? option.value : {value!r};"
        "field.dispatchEvent(new Event('change')); })()"
    )


def lines(shown):
    """(line, sample, 2) pixels of what is drawn, the nearest station first."""
    paths = shown.run(
        "[...document.querySelectorAll('.record .trace')]"
        ".map((path) => path.getAttribute('d'))"
    )
    return np.array([path_pixels(path) for path in paths])


def path_pixels(path):
    """(n, 2) corners of a line."""
    return [[float(v) for v in at.split()] for at in re.split("[ML]", path)[1:]]


def distances(greens, rows):
    """(n_station,) m, from the middle of what slips."""
    area = greens["source_area"].values[rows]
    x, y, _ = np.average(greens["source_position"].values[rows], axis=0, weights=area)
    return np.hypot(greens["station_x"] - x, greens["station_y"] - y).values


def row_of(greens, patch, kind):
    found = (greens["source_patch"].values == patch).all(axis=1)
    return int(np.flatnonzero(found & (greens["source_component"].values == kind))[0])


def drawn_values(shown, series, far):
    """Check that lines are values on one scale, at heights linear in distance."""
    pixels = lines(shown)
    order = np.argsort(far)
    assert pixels.shape[:2] == (len(order), series.shape[-1])
    zeros, scales = [], []
    for path, station in zip(pixels, order, strict=True):
        values = series[station].astype(float)
        matrix = np.column_stack([np.ones_like(values), values])
        (zero, scale), *_ = np.linalg.lstsq(matrix, path[:, 1], rcond=None)
        # drawn to a tenth of a pixel
        assert np.abs(matrix @ [zero, scale] - path[:, 1]).max() < 0.08
        zeros.append(zero)
        scales.append(scale)
    np.testing.assert_allclose(scales, scales[0], rtol=0.05)
    line = np.polyfit(far[order], zeros, 1)
    assert line[0] < 0
    np.testing.assert_allclose(np.polyval(line, far[order]), zeros, atol=0.5)
    return pixels
