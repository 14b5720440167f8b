"""Scenes that Kite has reduced by its quadtree.

Isken et al. (2017), GFZ Data Services, 10.5880/GFZ.2.1.2017.002.
``scene.quadtree.export_csv`` writes leaves at offsets from the scene's lower left
corner, and ``scene.save`` a YAML file with this corner and the covariance of the noise.
Kite itself is not needed; its wheels want NumPy 1.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from afterslip.errors import one_problem
from afterslip.readers.delimited import read_table
from afterslip.units import KM

LEAST_SHARE = 0.01
"""Of the correlated variance, that each leaf has of its own at least: a covariance
without any would say that near leaves differ by no error at all."""
# no station: scenes call their leaves by the same names
_COLUMNS = ("lon", "lat", "los", "los_e", "los_n", "los_u")


def write_pixels(
    leaves: bytes, scene: bytes, path: str | Path, label: str = "leaves"
) -> dict[str, Any]:
    """Write a quadtree as the CSV of pixels that specs name.

    Parameters
    ----------
    leaves : CSV of ``scene.quadtree.export_csv``.
    scene : YAML of ``scene.save``, spacing in degrees.

    Returns
    -------
    ``sigma`` and ``covariance`` of the data set as a spec writes them, from the
    exponential model that Kite has fitted to the noise.

    Raises
    ------
    SpecError
        With the line or the field of everything wrong.
    """
    config = _config(scene)
    corner = _corner(config)
    table = read_table(leaves, label, "focal_point_E,focal_point_N,unitE,...")
    names = ("focal_point_e", "focal_point_n", "los", "los_e", "los_n", "los_u")
    if not table.require(*names):
        table.check()
    numbers = np.column_stack([table.numbers(name, needed=True) for name in names])
    table.check()
    _write(Path(path), corner, numbers)
    return _errors(config)


def _write(path: Path, corner: tuple[float, float], numbers: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(_COLUMNS)
        for e, n, *rest in numbers:
            place = corner[0] + e, corner[1] + n
            out.writerow([f"{value:.7f}" for value in (*place, *rest)])


class _Loader(yaml.SafeLoader):
    """Reads mappings of Kite's classes as mappings."""


_Loader.add_multi_constructor(
    "!kite.", lambda loader, _name, node: loader.construct_mapping(node, deep=True)
)


def _config(scene: bytes) -> dict[str, Any]:
    try:
        # a safe loader, whose only addition makes mappings
        found = yaml.load(scene, _Loader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise one_problem("scene", None, f"is no YAML of Kite: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("frame"), dict):
        hint = "give the .yml that scene.save of Kite has written"
        raise one_problem("scene", None, "has no frame", hint)
    return found


def _corner(config: dict[str, Any]) -> tuple[float, float]:
    """Return lon and lat of the lower left corner, degrees."""
    frame = config["frame"]
    if frame.get("spacing") != "degree":
        hint = "geocode the scene first: its pixels must be in degrees"
        raise one_problem("scene.frame.spacing", frame.get("spacing"), "is no degree",
                          hint)  # fmt: skip
    return _number(config, "frame", "llLon"), _number(config, "frame", "llLat")


def _number(config: dict[str, Any], *keys: str | int) -> float:
    value: Any = config
    try:
        for key in keys:
            value = value[key]
        found = float(value)
    except (KeyError, IndexError, TypeError, ValueError):
        found = np.nan
    if not np.isfinite(found):
        name = ".".join(map(str, ("scene", *keys)))
        raise one_problem(name, None, "is missing, or no number")
    return found


def _errors(config: dict[str, Any]) -> dict[str, Any]:
    """Return errors of the leaves; nothing without a fitted exponential."""
    noise = config.get("covariance")
    if not isinstance(noise, dict) or noise.get("model_function") != "exponential":
        return {}
    power = _number(config, "covariance", "model_coefficients", 0)
    length = _number(config, "covariance", "model_coefficients", 1)
    if not (power > 0.0 and length > 0.0):
        return {}
    own = _number(config, "covariance", "variance") - power
    own = max(own, LEAST_SHARE * power)
    exponential = {"sigma": float(np.sqrt(power)), "length": length / KM}
    return {
        "sigma": {"los": float(np.sqrt(own))},
        "covariance": {"exponential": exponential},
    }
