"""Curved interfaces of the problems of `space_error.py`, as files of a spec."""

from pathlib import Path

import numpy as np


def slab() -> str:
    """CSV of the interface as a whole, to 120 km depth."""
    s, depth = (
        a.ravel()
        for a in np.meshgrid(np.linspace(-150, 150, 41), np.linspace(0, 120, 41))
    )
    across = 2.6 * depth - 0.009 * depth**2 + 1.2e-3 * s**2
    rows = zip(across, s, depth, strict=True)
    lines = [f"{x:.4f},{y:.4f},{z:.4f}\n" for x, y, z in rows]
    return "x_km,y_km,depth_km\n" + "".join(lines)


def interface() -> str:
    """CSV of a thrust that steepens downwards and bends along strike."""
    s, depth = (
        a.ravel() for a in np.meshgrid(np.linspace(-60, 60, 31), np.linspace(0, 46, 24))
    )
    across = 2.6 * depth - 0.022 * depth**2 + 1.2e-3 * s**2
    rows = zip(across, s, depth, strict=True)
    lines = [f"{x:.4f},{y:.4f},{z:.4f}\n" for x, y, z in rows]
    return "x_km,y_km,depth_km\n" + "".join(lines)


def outline(steeper: float = 0.022) -> str:
    """CSV of where the interface slips: 40 km deep, 90 km long."""
    s = np.linspace(-45, 45, 19)
    low = 2.6 * 40 - steeper * 40**2 + 1.2e-3 * s**2
    edge = [*zip(1.2e-3 * s**2, s, strict=True), *zip(low[::-1], s[::-1], strict=True)]
    return "x_km,y_km\n" + "".join(f"{x:.4f},{y:.4f}\n" for x, y in edge)


def write_files(folder: Path) -> None:
    """Write what the specs read."""
    (folder / "interface.csv").write_text(interface())
    (folder / "outline.csv").write_text(outline())
    (folder / "slab.csv").write_text(slab())
    (folder / "slab-outline.csv").write_text(outline(0.009))
