"""Versions of what makes the numbers, written beside them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("afterslip", "numpy", "scipy", "numba", "pyamg", "gmsh", "zarr", "xarray")


def versions() -> dict[str, str]:
    """Return the versions of the packages behind a result.

    A package that is not here has had no part: gmsh need not be where a model
    comes from the cache or from another program.
    """
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
