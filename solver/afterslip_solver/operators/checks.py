"""Defects of a model that would make a solve fail, found before it."""

from __future__ import annotations

import numpy as np

from afterslip_common.errors import InputError
from afterslip_solver.mesh.numbering import flat_elements
from afterslip_solver.mesh.tables.sorting import pieces
from afterslip_solver.model import Bool, Float, Materials, Model, Restoring, TetMesh
from afterslip_solver.operators.space import in_any_component
from afterslip_solver.rheology import Branch

MOTIONS = (
    "translation in x",
    "translation in y",
    "translation in z",
    "rotation about x",
    "rotation about y",
    "rotation about z",
)


class ModelError(InputError, ValueError):
    """The model has no unique solution; the message says how to repair it."""


def check_model(model: Model) -> None:
    """Raise `ModelError` unless materials, mesh and constraints allow a solve."""
    mesh = model.mesh
    finite = np.isfinite(mesh.nodes)
    if not finite.all():
        bad = ~finite.all(axis=1)
        raise ModelError(
            f"{int(bad.sum())} nodes of the mesh have coordinates that are not finite "
            f"(first: node {int(np.argmax(bad))})"
        )
    _check_elements(mesh)
    _check_materials(model.materials, mesh)
    if model.fixed.shape != model.mesh.nodes.shape:
        message = f"fixed has shape {model.fixed.shape}, not {model.mesh.nodes.shape}"
        raise ModelError(message)
    if model.restoring is not None:
        _check_restoring(model.restoring)
    _check_constraints(model.mesh, model.fixed)


def _check_restoring(restoring: Restoring) -> None:
    stiffness = restoring.stiffness
    bad = ~(np.isfinite(stiffness) & (stiffness >= 0))
    if bad.any():
        message = (
            f"the restoring force is negative on {int(bad.sum())} faces: "
            "densities must not fall downwards where it acts"
        )
        raise ModelError(message)


def _check_elements(mesh: TetMesh) -> None:
    """No element may be flat or inside out."""
    _refuse(
        mesh,
        # rounding of coordinates leaves a flat element a volume of this order
        flat_elements(mesh.nodes, mesh.cells, 1e-14),
        "no positive volume: they are inverted or flat",
        "mesh again, or list the vertices of each so that its volume is positive",
    )


def _check_materials(materials: Materials, mesh: TetMesh) -> None:
    n_elem = len(mesh.elements)
    for name in ("lam", "mu", "viscosity"):
        values = getattr(materials, name)
        if values.shape != (n_elem,):
            message = f"{name} has shape {values.shape}, not ({n_elem},)"
            raise ModelError(message)
    _check_kelvin(materials, mesh)
    finite = np.isfinite(materials.lam) & np.isfinite(materials.mu)
    _refuse(mesh, ~finite, "elastic moduli that are not finite", "check vp, vs and rho")
    soft = materials.mu <= 0
    _refuse(mesh, soft, "a shear modulus of zero or less", "raise vs or rho")
    bulk = materials.lam + 2.0 / 3.0 * materials.mu
    _refuse(
        mesh,
        bulk <= 0,
        "a bulk modulus of zero or less",
        "vs must be below vp * sqrt(3)/2",
    )
    _refuse(
        mesh,
        ~(materials.viscosity > 0),
        "a viscosity that is not positive",
        "use a positive viscosity in Pa s, or leave the rheology out where elastic",
    )
    for number, branch in enumerate(materials.branches, start=1):
        _check_branch(branch, f"branch {number} of the rheology", mesh)


def _check_branch(branch: Branch, name: str, mesh: TetMesh) -> None:
    shape = (len(mesh.elements),)
    if branch.viscosity.shape != shape or branch.springs.shape != shape:
        raise ModelError(f"{name} must have {shape[0]} viscosities and moduli")
    bad = ~(branch.viscosity > 0.0)
    _refuse(mesh, bad, f"a viscosity of {name} that is not positive", "inf is none")
    if branch.modulus is None:
        return
    bad = ~((branch.modulus >= 0.0) & np.isfinite(branch.modulus))
    _refuse(mesh, bad, f"a modulus of {name} that is negative or infinite", "0 is none")


def _check_kelvin(materials: Materials, mesh: TetMesh) -> None:
    """Kelvin elements come whole, and only in series with a Maxwell dashpot."""
    n_elem = len(mesh.elements)
    slow, modulus = materials.kelvin_viscosity, materials.kelvin_modulus
    if (slow is None) != (modulus is None):
        raise ModelError("give kelvin_viscosity and kelvin_modulus, or neither")
    if slow is None or modulus is None:
        return
    for name, values in {"kelvin_viscosity": slow, "kelvin_modulus": modulus}.items():
        if values.shape != (n_elem,):
            message = f"{name} has shape {values.shape}, not ({n_elem},)"
            raise ModelError(message)
        bad = ~(values > 0)
        _refuse(mesh, bad, f"a {name} that is not positive", "use a positive one")
    _refuse(
        mesh,
        np.isfinite(slow) & np.isfinite(modulus) & ~np.isfinite(materials.viscosity),
        "a Kelvin element but no Maxwell viscosity",
        "give a Burgers body both viscosities",
    )


def _refuse(mesh: TetMesh, bad: Bool, what: str, remedy: str) -> None:
    if bad.any():
        count, first = int(bad.sum()), int(np.argmax(bad))
        x, y, z = mesh.nodes[mesh.cells[first]].mean(axis=0) / 1e3
        message = (
            f"{count} elements have {what} (first: element {first}, at x = {x:.1f}, "
            f"y = {y:.1f}, z = {z:.1f} km); {remedy}"
        )
        raise ModelError(message)


def rigid_motions(nodes: Float, body: Float | None = None) -> Float:
    """Six rigid motions of the nodes, scaled to comparable size.

    Parameters
    ----------
    nodes : (n_node, 3) float64, m.
    body : (n, 3) m, about whose centre to turn and whose size to scale by; default
        the nodes.

    Returns
    -------
    (n_node, 3, 6) float64: three translations, then rotations about x, y, z.
    """
    body = nodes if body is None else body
    centre = body.mean(axis=0)
    x = (nodes - centre) / max(float(np.abs(body - centre).max()), 1e-300)
    modes = np.zeros((len(nodes), 3, 6))
    modes[:, [0, 1, 2], [0, 1, 2]] = 1.0
    modes[:, 1, 3], modes[:, 2, 3] = -x[:, 2], x[:, 1]
    modes[:, 0, 4], modes[:, 2, 4] = x[:, 2], -x[:, 0]
    modes[:, 0, 5], modes[:, 1, 5] = -x[:, 1], x[:, 0]
    return modes


def _check_constraints(mesh: TetMesh, fixed: Bool) -> None:
    """Each connected piece of the mesh must be fixed against all rigid motions."""
    count, piece = pieces(mesh.cells, mesh.n_vertex)
    constrained = in_any_component(fixed)
    # of millions of nodes, nearly always all
    of_node = np.zeros(len(mesh.nodes), np.int64)
    if count > 1:
        of_node[mesh.elements] = piece[mesh.cells[:, :1]]
    vertices = mesh.nodes[: mesh.n_vertex]
    for number in range(count):
        own = constrained & (of_node == number)
        modes = rigid_motions(mesh.nodes[own], vertices[piece == number])[fixed[own]]
        _, values, motions = np.linalg.svd(
            np.vstack([modes, np.zeros((6, 6))]), full_matrices=False
        )
        free = values < 1e-9 * max(float(values[0]), 1e-300)
        if values[0] == 0.0 or free.any():
            loose = motions[free] if values[0] > 0 else np.eye(6)
            names = [MOTIONS[k] for k in np.flatnonzero(np.abs(loose).max(0) > 0.3)]
            where = f" of piece {number + 1} of {count}" if count > 1 else ""
            message = (
                f"nothing holds the mesh{where} against {', '.join(names)}: "
                "fix the bottom, or the sides of the domain"
            )
            raise ModelError(message)
