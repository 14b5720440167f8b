r"""Figures of docs/verification.md.

    python benchmarks/verify_figures.py --json benchmarks/verify-h200.json \
        --out docs/images

Solves the earthquake cycles and the layered half-space at small size on the CPU.
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from afterslip_solver.reference import LongFault
from afterslip_solver.verification import plates, strata

COLOURS = plt.get_cmap("viridis")(np.linspace(0.05, 0.85, 5))
LEVELS = {"excellent": "#2a7f62", "good": "#7aa95c", "acceptable": "#d9a441"}


def curves(out: Path) -> None:
    """Solver (dots) on top of the references (lines)."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.2))
    x, result = plates.long_fault(
        plates.LOCKED / 2, (plates.CYCLES + 1) * plates.PERIOD
    )
    near = np.flatnonzero((np.abs(x) < plates.COMPARED) & (np.abs(x) > 5e3))
    chosen = np.zeros(len(x), dtype=bool)
    chosen[near] = True
    found = plates.cycle_motion(result, chosen, x[chosen])
    line = np.concatenate(
        (np.linspace(-200e3, -1e3, 200), np.linspace(1e3, 200e3, 200))
    )
    exact = LongFault(plates.LOCKED, plates.PLATE, plates.TAU).cycles(
        line, plates.AFTER, plates.PERIOD, plates.CYCLES
    )
    slip = 4.0
    for k in range(1, len(plates.AFTER)):
        years = plates.AFTER[k] / plates.YEAR
        for side in (line < 0, line > 0):
            words = f"{years:.0f} yr" if side[-1] else None
            colour = COLOURS[k - 1]
            left.plot(
                line[side] / 1e3, slip * exact[k, side], color=colour, label=words
            )
        left.plot(x[chosen] / 1e3, slip * found[k], ".", ms=5, color=COLOURS[k - 1])
    left.set(
        xlabel="distance from fault (km)",
        ylabel="motion since the last earthquake (m)",
        title="Savage-Prescott, cycle 10 (2 cm/yr)",
    )
    left.legend(title="after", fontsize=8)
    layered = strata.misfit(6e3, 1200e3, 0.2)
    change = layered.exact[1:] - layered.exact[0]
    solved = layered.found[1:] - layered.found[0]
    names = ("east", "north", "up")
    for k, time in enumerate(strata.TIMES[1:] / strata.TAU):
        middle.plot(
            1e3 * change[k].ravel(),
            1e3 * solved[k].ravel(),
            ".",
            ms=4,
            color=COLOURS[2 * k],
            label=f"{time:g} relaxation times",
        )
    ends = 1e3 * np.array([change.min(), change.max()])
    middle.plot(ends, ends, "k", lw=0.7)
    middle.set(
        xlabel="propagator in wavenumber (mm)",
        ylabel="finite elements (mm)",
        title="Layer on a Maxwell half-space,\nrelaxation per metre of thrust slip",
    )
    middle.legend(fontsize=8)
    radius = np.linalg.norm(layered.points[:, :2], axis=1) / 1e3
    for c, name in enumerate(names):
        right.plot(
            radius,
            1e3 * (solved[-1] - change[-1])[:, c],
            ".",
            ms=4,
            color=COLOURS[2 * c],
            label=name,
        )
    right.set(
        xlabel="distance from the fault's top (km)",
        ylabel="error after 10 relaxation times (mm)",
        title=f"Its error; the peak is {1e3 * np.abs(change[-1]).max():.0f} mm",
    )
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out / "verification-curves.png", dpi=110)


def levels(record: Path, out: Path) -> None:
    """Every error over its limit, by item."""
    checks = json.loads(record.read_text())["checks"]
    checks = [c for c in checks if c["measure"] == "error" and c["error"] is not None]
    items = list(dict.fromkeys(c["name"] for c in checks))
    figure, axes = plt.subplots(figsize=(9, 0.33 * len(items) + 1.6))
    for level, colour in LEVELS.items():
        some = [c for c in checks if c["level"] == level]
        ratio = [max(c["error"] / c["limit"], 1e-9) for c in some]
        row = [items.index(c["name"]) for c in some]
        axes.semilogx(ratio, row, "o", ms=6, alpha=0.7, color=colour, label=level)
    axes.axvline(1.0, color="k", lw=0.8)
    axes.set_yticks(range(len(items)), items)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set(xlabel="error over the limit that fails (rounding is cut off at 1e-9)")
    axes.legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(out / "verification-levels.png", dpi=110)


def main() -> None:
    """Draw both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    levels(options.json, options.out)
    curves(options.out)


if __name__ == "__main__":
    main()
