"""Slip through time with what a request leaves out: priors and weights are chosen."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import NAMES, X_KM, Y_KM, observations
from test_inversion_data import TRUTH, invert, motion, solved

from afterslip_common.terms import YEAR

__all__ = ["solved"]


def test_increments_need_nothing_but_their_ends(solved):
    epochs = [0.0, 0.5, 1.0]
    noise = np.random.default_rng(3)
    head, *_ = observations(np.zeros((len(NAMES), 3))).splitlines()
    lines = [head + ",time"]
    for when in epochs:
        moved = motion(solved, X_KM, Y_KM, [when * YEAR])[0]
        moved += noise.normal(0, 0.002, moved.shape)
        lines += [
            f"{name},{x},{y},{e:.6f},{n:.6f},{u:.6f},.002,.002,.002,gnss,{when}"
            for name, x, y, (e, n, u) in zip(NAMES, X_KM, Y_KM, moved, strict=True)
        ]
    found, _, _ = invert(
        solved, "i21", [{"name": "series", "file": "series.csv"}],
        {"series.csv": "\n".join(lines)}, increments={"ends": ["1 yr"]},
    )  # fmt: skip
    # all slip is coseismic
    coseismic, later = found["slip_increment"].values
    assert np.abs(later).max() < 0.3 * np.abs(coseismic).max()
    assert np.abs(coseismic - TRUTH).max() < 0.4
