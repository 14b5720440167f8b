"""Meshes moved onto the Earth: elements, faults, the vertical, coarser meshes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.sphere import carried_axes
from afterslip_solver.materials import restoring_force
from afterslip_solver.mesh import (
    Box,
    MeshError,
    MeshSize,
    PlaneFault,
    boundary_conditions,
    build_mesh,
    coarsened,
    heights,
    place,
    placed,
    placed_slip,
    surface_trace,
)
from afterslip_solver.mesh.fault import triangle_normals
from afterslip_solver.model import TET_EDGES, Materials, Model
from afterslip_solver.operators import Space, Springs

RADIUS = 300e3


def on_sphere(model, lift=None):
    placement = place(model.mesh, RADIUS, lift)
    restoring, _ = restoring_force(model.mesh, model.materials.rho)
    return replace(model, placement=placement, restoring=restoring)


def test_elements_stay_straight_sided(small):
    model = on_sphere(small.box_model())
    nodes, elements = model.placement.nodes, model.mesh.elements
    for k, (a, b) in enumerate(TET_EDGES):
        middle = 0.5 * (nodes[elements[:, a]] + nodes[elements[:, b]])
        np.testing.assert_array_equal(nodes[elements[:, 4 + k]], middle)


def test_vertices_keep_their_depth_and_the_ground_its_height(small):
    mesh = small.box_model().mesh
    x, _, z = mesh.nodes[: mesh.n_vertex].T
    lift = 500.0 + 0.02 * x
    model = on_sphere(small.box_model(), lift)
    found = heights(model)[: mesh.n_vertex]
    share = 1.0 - (z - z.max()) / (z.min() - z.max())
    np.testing.assert_allclose(found, z + lift * share, atol=1e-6)
    flat = replace(model, placement=place(mesh, np.inf, lift))
    found = heights(flat)[: mesh.n_vertex]
    np.testing.assert_allclose(found, z + lift * share, atol=1e-9)
    np.testing.assert_array_equal(flat.placement.nodes[:, :2], mesh.nodes[:, :2])


def test_a_model_that_stays_in_its_box_is_the_same_object(small):
    model = small.box_model()
    assert placed(model) is model
    slip = {"main": np.ones((2, 3, 4))}
    assert placed_slip(model, slip) is slip


def test_moving_that_turns_elements_over_is_refused_with_numbers(small):
    mesh = small.box_mesh((4, 4, 4), (4e4, 4e4, 4e4))
    lift = np.where(mesh.nodes[: mesh.n_vertex, 0] > mesh.nodes[:, 0].mean(), 5e5, 0.0)
    with pytest.raises(MeshError, match=r"spoils \d+ more; the worst is .* km long"):
        place(mesh, np.inf, lift)
    below = np.full(mesh.n_vertex, -5e4)
    with pytest.raises(MeshError, match=r"turns \d+ elements inside out"):
        place(mesh, np.inf, below)


def test_slip_turns_with_its_fault_and_stays_in_it(small):
    model = on_sphere(small.box_model())
    name, fault = next(iter(model.faults.items()))
    values = np.stack([fault.strike, fault.updip, 0.6 * fault.strike], axis=2)
    turned = placed_slip(model, {name: values})[name]
    length = np.linalg.norm(turned, axis=1)
    np.testing.assert_allclose(length, np.linalg.norm(values, axis=1))
    # it lies in the triangles around it
    nodes = model.placement.nodes
    normals = triangle_normals(nodes, fault.triangles)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    at = np.searchsorted(fault.nodes, fault.triangles[:, :3])
    out = np.einsum("tkcl,tc->tkl", turned[at], normals)
    assert np.abs(out).max() < 0.06
    # and keeps its direction in the local axes, but for the shape of the map
    x, y, _ = model.mesh.nodes[fault.nodes].T
    axes = carried_axes(x, y, RADIUS)
    local = np.einsum("nac,ncl->nal", axes, turned)
    assert np.abs(local - values).max() < 0.06
    assert np.abs(turned - values).max() > 0.04


def test_the_restoring_force_acts_along_the_vertical_of_each_node(small):
    """Energy of a motion along the vertical is that of the flat model, and no other."""
    model = placed(on_sphere(small.box_model()))
    free = np.zeros((len(model.mesh.nodes), 3), dtype=bool)
    space = Space.build(model.mesh, free)
    assert model.restoring is not None
    springs = Springs(small.backend, space, model.restoring)
    away = space.nodes + np.array([0.0, 0.0, RADIUS])
    up = away / np.linalg.norm(away, axis=1, keepdims=True)
    across = np.cross(up, [0.3, 1.0, 0.2])
    u = np.repeat(np.stack([up, across], axis=2), 2, axis=2)
    out = np.zeros_like(u)
    springs.add(small.backend.asarray(u), out)
    energy = np.einsum("ncl,ncl->l", u, out)
    faces, stiffness = model.restoring.faces, model.restoring.stiffness
    sides = np.diff(model.mesh.nodes[faces[:, :3]], axis=1)
    area = 0.5 * np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    # projected along the mean vertical of the corners, whose lengths are not quite 1
    assert energy[0] == pytest.approx(stiffness @ area, rel=2e-3)
    assert np.abs(energy[2:]).max() < 1e-9 * energy[0]
    # the matrix of the linear elements agrees for a motion that they have
    assert springs.up is not None
    assert np.abs(np.cross(out[..., 0], up)).max() < 1e-9 * np.abs(out).max()


def test_a_coarser_model_has_the_vertices_of_the_finer_one(small):
    plane = PlaneFault("main", 0.0, 0.0, 4e3, 20.0, 50.0, 2e4, 1e4)
    box = Box((-4e4, 4e4), (-4e4, 4e4), 4e4)
    made = build_mesh(box, [plane], MeshSize(6e3, 2e4), refine=1)
    one = np.ones(len(made.mesh.elements))
    fine = Model(
        made.mesh,
        Materials(3e10 * one, 3e10 * one, 3e3 * one, np.inf * one),
        boundary_conditions(made.mesh, "fixed", "fixed"),
        surface_trace(made.mesh),
        made.faults,
        made.splits,
        placement=place(made.mesh, RADIUS),
    )
    coarse = coarsened(fine, restoring_force)
    assert coarse is not None
    assert coarse.placement is not None
    assert fine.placement is not None
    n_vertex = coarse.mesh.n_vertex
    found = coarse.placement.nodes
    np.testing.assert_array_equal(found[:n_vertex], fine.placement.nodes[:n_vertex])
    again = place(coarse.mesh, RADIUS)
    np.testing.assert_allclose(found, again.nodes, atol=1e-6)
