"""One material per element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from afterslip_common.properties import PropertyGrid
from afterslip_solver.materials.properties import (
    Body,
    Layer,
    MaterialError,
    check_properties,
)
from afterslip_solver.mesh.tables.bisection import centres as centres_of
from afterslip_solver.model import Bool, Float, Materials, TetMesh

# vp, vs, rho, viscosity, kelvin_viscosity, kelvin_ratio, number of the part
_COLUMNS = 7


def assign(
    mesh: TetMesh,
    layers: Sequence[Layer],
    bodies: Sequence[Body] = (),
    grid: PropertyGrid | None = None,
    by_tag: bool = False,
) -> Materials:
    """Give each element the material at its centroid.

    A grid overrides layers where it has values; bodies override both, later ones
    earlier ones.

    Parameters
    ----------
    by_tag : the elements' tags name their layer or body (imported meshes); depths
        and interfaces are then not used.

    Returns
    -------
    Materials. Raises MaterialError where an element is left without a material or
    a property is not physical.
    """
    parts: list[Layer | Body] = [*layers, *bodies]
    for part in parts:
        check_properties(part)
    values = np.full((len(mesh.elements), _COLUMNS), np.nan)
    centres = centres_of(mesh.nodes, mesh.cells)
    if by_tag:
        _by_tag(mesh, parts, values)
    else:
        _by_layer(layers, -centres[:, 2], values)
        _check_thickness(layers, -centres[:, 2])
    if grid is not None:
        _by_grid(grid, centres, values)
    if not by_tag:
        for number, body in enumerate(bodies):
            values[inside_of(body, centres)] = _row(body, len(layers) + number)
    return _moduli(values, centres, parts)


def moduli_at(
    points: Float,
    layers: Sequence[Layer],
    bodies: Sequence[Body] = (),
    grid: PropertyGrid | None = None,
) -> tuple[Float, Float, Float]:
    """Return lam and mu, Pa, and rho, kg/m3, at points, each (n,); see `assign`.

    Parameters
    ----------
    points : (n, 3) m, below the ground.
    """
    parts: list[Layer | Body] = [*layers, *bodies]
    for part in parts:
        check_properties(part)
    values = np.full((len(points), _COLUMNS), np.nan)
    _by_layer(layers, -points[:, 2], values)
    if grid is not None:
        _by_grid(grid, points, values)
    for number, body in enumerate(bodies):
        values[inside_of(body, points)] = _row(body, len(layers) + number)
    found = _moduli(values, points, parts)
    return found.lam, found.mu, found.rho


def _row(part: Layer | Body, number: int) -> list[float]:
    own = [part.vp, part.vs, part.rho, part.viscosity]
    return [*own, part.kelvin_viscosity, part.kelvin_ratio, number]


def _by_layer(layers: Sequence[Layer], depth: Float, values: Float) -> None:
    bottoms = np.array([layer.bottom for layer in layers], dtype=np.float64)
    if len(bottoms) and (bottoms[0] <= 0.0 or np.any(np.diff(bottoms) <= 0.0)):
        raise MaterialError(
            "layers must be listed from the surface down, each bottom deeper than "
            f"the one above; got {', '.join(f'{b / 1e3:g}' for b in bottoms)} km"
        )
    which = np.searchsorted(bottoms, depth)
    for i, layer in enumerate(layers):
        values[which == i] = _row(layer, i)


def _check_thickness(layers: Sequence[Layer], depth: Float) -> None:
    """Refuse layers that no element of a mesh would have.

    Parameters
    ----------
    depth : of the centres of all elements, m.
    """
    top = 0.0
    for layer in layers:
        found = (depth > top) & (depth <= layer.bottom)
        if top < depth.max() and not found.any():
            thick = (layer.bottom - top) / 1e3
            raise MaterialError(
                f"layer {layer.name}: no element has its centre in its {thick:.2g} km: "
                f"a mesh.size.fault of {1.9 * thick:.2g} km would do, or join it to a "
                "neighbour"
            )
        top = layer.bottom


def _by_tag(mesh: TetMesh, parts: Sequence[Layer | Body], values: Float) -> None:
    known = {part.name: number for number, part in enumerate(parts)}
    for i, name in enumerate(mesh.tag_names):
        chosen = mesh.tags == i
        if not chosen.any():
            continue
        if name not in known:
            raise MaterialError(
                f"the mesh's part {name!r} ({int(chosen.sum())} elements) has no "
                f"material; known are {', '.join(known) or 'none'}: name layers and "
                "bodies like the physical groups of the mesh"
            )
        values[chosen] = _row(parts[known[name]], known[name])


def _by_grid(grid: PropertyGrid, centres: Float, values: Float) -> None:
    axes = (grid.x, grid.y, grid.depth)
    shape = tuple(len(axis) for axis in axes)
    fields = {"vp": grid.vp, "vs": grid.vs, "rho": grid.rho}
    if grid.viscosity is not None:
        if np.any(grid.viscosity <= 0.0):
            raise MaterialError("grid: viscosities must be positive (inf is elastic)")
        fields["viscosity"] = np.log10(grid.viscosity)
    for axis in axes:
        if len(axis) < 2 or np.any(np.diff(axis) <= 0.0):
            raise MaterialError("grid: each axis needs two or more rising values")
    at = np.column_stack([centres[:, 0], centres[:, 1], -centres[:, 2]])
    found = []
    for name, field in fields.items():
        if field.shape != shape:
            raise MaterialError(f"grid: {name} has shape {field.shape}, not {shape}")
        # infinite viscosities would turn into NaN between a finite neighbour
        finite = np.where(np.isposinf(field), 60.0, field)
        found.append(RegularGridInterpolator(axes, finite, bounds_error=False)(at))
    known: Bool = np.isfinite(np.stack(found)).all(axis=0)
    for column, value in enumerate(found[:3]):
        values[known, column] = value[known]
    if len(found) == 4:
        # beyond 1e30 Pa s nothing flows in geological time
        flows = found[3][known] < 30.0
        values[known, 3] = np.where(flows, 10.0 ** found[3][known], np.inf)
    elif np.isnan(values[known, 3]).any():
        values[known & np.isnan(values[:, 3]), 3] = np.inf
    # no Kelvin element without a dashpot, nor where no layer says so
    kelvin = values[:, 4:6]
    kelvin[known & np.isinf(values[:, 3])] = np.inf
    kelvin[known[:, None] & np.isnan(kelvin)] = np.inf
    values[known & np.isnan(values[:, 6]), 6] = -1


def inside_of(body: Body, centres: Float) -> Bool:
    """(n,) whether points (n, 3), m, are in a body."""
    if body.thickness <= 0.0:
        raise MaterialError(f"{body.name}: thickness must be positive")
    across = body.across(centres)
    return np.asarray((across > 0.0) & (across <= body.thickness))


def _moduli(values: Float, centres: Float, parts: Sequence[Layer | Body]) -> Materials:
    bare = np.isnan(values).any(axis=1)
    if bare.any():
        deepest = -float(centres[bare, 2].max()) / 1e3
        raise MaterialError(
            f"{int(bare.sum())} elements have no material, the shallowest at "
            f"{deepest:.1f} km depth; let the last layer's bottom reach the domain's"
        )
    vp, vs, rho, viscosity, delay, ratio, number = values.T
    mu = rho * vs**2
    lam = rho * vp**2 - 2.0 * mu
    bad = ~(mu > 0.0) | ~(lam + 2.0 / 3.0 * mu > 0.0) | ~(rho > 0.0)
    if bad.any():
        worst = int(np.flatnonzero(bad)[0])
        raise MaterialError(
            f"{int(bad.sum())} elements have moduli that are not positive, for example "
            f"vp = {vp[worst]:.0f} m/s, vs = {vs[worst]:.0f} m/s, rho = "
            f"{rho[worst]:.0f} kg/m3; vs must be below vp / 1.155"
        )
    delayed = bool(np.isfinite(delay).any())
    branches = _branches(parts, number, mu)
    return Materials(
        lam=np.ascontiguousarray(lam),
        mu=np.ascontiguousarray(mu),
        rho=np.ascontiguousarray(rho),
        viscosity=np.ascontiguousarray(viscosity),
        kelvin_viscosity=np.ascontiguousarray(delay) if delayed else None,
        kelvin_modulus=np.ascontiguousarray(ratio * mu) if delayed else None,
        branch_viscosity=branches and branches[0],
        branch_modulus=branches and branches[1],
    )


def _branches(
    parts: Sequence[Layer | Body], number: Float, mu: Float
) -> tuple[Float, Float] | None:
    """Branches (n, n_branch) of parts with a rheology of their own, Pa s and Pa."""
    found = []
    for k, part in enumerate(parts):
        chosen = np.flatnonzero(number == k)
        if part.branches is not None and len(chosen):
            found.append((chosen, *part.branches(mu[chosen])))
    if not found:
        return None
    shape = len(mu), max(viscosity.shape[1] for _, viscosity, _ in found)
    whole = np.full(shape, np.inf), np.zeros(shape)
    for chosen, *own in found:
        for target, values in zip(whole, own, strict=True):
            target[chosen, : values.shape[1]] = values
    return whole
