"""One material per element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from afterslip_common.properties import PropertyGrid
from afterslip_solver.jit.threads import over
from afterslip_solver.materials.properties import (
    Body,
    Layer,
    MaterialError,
    check_properties,
)
from afterslip_solver.mesh.tables.bisection import centres as centres_of
from afterslip_solver.model import Bool, Float, Int, Materials, TetMesh

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
    if by_tag:
        _check_tags(mesh, parts)
    count = len(mesh.elements)
    # NumPy's passes over millions of elements, of which each takes a part in a thread
    whole, flawed = [np.empty(count) for _ in range(_COLUMNS)], list[MaterialError]()

    def values_of(first: int, last: int) -> tuple[Float, Float]:
        centres = centres_of(mesh.nodes, mesh.cells[first:last])
        if not by_tag:
            return _values(centres, layers, bodies, grid), centres
        values = _by_tag(mesh.tags[first:last], mesh.tag_names, parts)
        if grid is not None:
            _by_grid(grid, centres, values)
        return values, centres

    def fill(first: int, last: int) -> None:
        try:
            found = _moduli(*values_of(first, last))
        except MaterialError as error:
            flawed.append(error)
            return
        for target, values in zip(whole, found, strict=True):
            target[first:last] = values

    over(count, fill)
    if flawed:
        # says how many of all elements are wrong
        _moduli(*values_of(0, count))
        raise flawed[0]
    if not by_tag:
        _check_thickness(mesh, layers)
    return _materials(whole, parts)


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
    lam, mu, rho, *_ = _moduli(_values(points, layers, bodies, grid), points)
    return lam, mu, rho


def _values(
    points: Float,
    layers: Sequence[Layer],
    bodies: Sequence[Body],
    grid: PropertyGrid | None,
) -> Float:
    """(n, column) of points; NaN where there is nothing."""
    values = np.full((len(points), _COLUMNS), np.nan)
    _by_layer(layers, -points[:, 2], values)
    if grid is not None:
        _by_grid(grid, points, values)
    for number, body in enumerate(bodies):
        values[inside_of(body, points)] = _row(body, len(layers) + number)
    return values


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


def _check_thickness(mesh: TetMesh, layers: Sequence[Layer]) -> None:
    """Refuse layers that no element of a mesh would have."""
    bottoms = np.array([layer.bottom for layer in layers], dtype=np.float64)
    held = np.zeros(len(layers) + 1, dtype=np.bool_)
    deepest = list[float]()

    def look(first: int, last: int) -> None:
        depth = -centres_of(mesh.nodes, mesh.cells[first:last])[:, 2]
        held[np.searchsorted(bottoms, depth[depth > 0.0])] = True
        deepest.append(float(depth.max()))

    over(len(mesh.elements), look)
    tops = [0.0, *bottoms[:-1]]
    for layer, top, some in zip(layers, tops, held, strict=False):
        if top < max(deepest) and not some:
            thick = (layer.bottom - top) / 1e3
            raise MaterialError(
                f"layer {layer.name}: no element has its centre in its {thick:.2g} km: "
                f"a mesh.size.fault of {1.9 * thick:.2g} km would do, or join it to a "
                "neighbour"
            )


def _check_tags(mesh: TetMesh, parts: Sequence[Layer | Body]) -> None:
    known = [part.name for part in parts]
    counts = np.bincount(mesh.tags, minlength=len(mesh.tag_names))
    for name, count in zip(mesh.tag_names, counts, strict=False):
        if count and name not in known:
            raise MaterialError(
                f"the mesh's part {name!r} ({int(count)} elements) has no "
                f"material; known are {', '.join(known) or 'none'}: name layers and "
                "bodies like the physical groups of the mesh"
            )


def _by_tag(tags: Int, names: Sequence[str], parts: Sequence[Layer | Body]) -> Float:
    numbers = {part.name: number for number, part in enumerate(parts)}
    rows = np.full((len(names), _COLUMNS), np.nan)
    for row, name in zip(rows, names, strict=True):
        if name in numbers:
            row[:] = _row(parts[numbers[name]], numbers[name])
    return np.asarray(rows[tags])


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


def _moduli(values: Float, centres: Float) -> tuple[Float, ...]:
    """Lam, mu, rho, viscosity, those of a Kelvin element, and the number of the part.

    Raises
    ------
    MaterialError
        Some elements have no material, or moduli that are not positive.
    """
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
    return lam, mu, rho, viscosity, delay, ratio * mu, number


def _materials(found: Sequence[Float], parts: Sequence[Layer | Body]) -> Materials:
    lam, mu, rho, viscosity, delay, modulus, number = found
    delayed = bool(np.isfinite(delay).any())
    branches = _branches(parts, number, mu)
    return Materials(
        lam=lam,
        mu=mu,
        rho=rho,
        viscosity=viscosity,
        kelvin_viscosity=delay if delayed else None,
        kelvin_modulus=modulus if delayed else None,
        branch_viscosity=branches and branches[0],
        branch_modulus=branches and branches[1],
    )


def _branches(
    parts: Sequence[Layer | Body], number: Float, mu: Float
) -> tuple[Float, Float] | None:
    """Branches (n, n_branch) of parts with a rheology of their own, Pa s and Pa."""
    found = []
    for k, part in enumerate(parts):
        if part.branches is None:
            continue
        chosen = np.flatnonzero(number == k)
        if len(chosen):
            found.append((chosen, *part.branches(mu[chosen])))
    if not found:
        return None
    shape = len(mu), max(viscosity.shape[1] for _, viscosity, _ in found)
    whole = np.full(shape, np.inf), np.zeros(shape)
    for chosen, *own in found:
        for target, values in zip(whole, own, strict=True):
            target[chosen, : values.shape[1]] = values
    return whole
