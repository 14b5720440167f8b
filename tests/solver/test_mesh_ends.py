"""Shorter edges where a fault ends at the ground."""

from dataclasses import replace

import numpy as np
import pytest

from afterslip_common.terms import KM
from afterslip_solver.mesh import Box, MeshSize, PlaneFault, build_mesh

BOX = Box((-150 * KM, 150 * KM), (-120 * KM, 120 * KM), 100 * KM)
SIZE = MeshSize(8 * KM, 80 * KM, 0.7)
LENGTH, WIDTH = 60.0, 36.0


def _edges(top, ends):
    """Return middles and lengths of a fault's edges along strike and down dip, km."""
    fault = PlaneFault("main", 3e3, -4e3, top * KM, 37.0, 30.0, LENGTH * KM, WIDTH * KM)
    geometry = build_mesh(BOX, [fault], replace(SIZE, ends=ends))
    mesh, found = geometry.mesh, geometry.faults["main"]
    pairs = found.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    long = np.linalg.norm(np.diff(mesh.nodes[pairs], axis=1)[:, 0], axis=1)
    place = np.searchsorted(found.nodes, pairs)
    along, down = (axis[place].mean(axis=1) for axis in (found.along, found.down))
    return along / KM, down / KM, long / KM, len(mesh.cells)


def _typical(long, chosen):
    return float(np.median(long[chosen]))


def _middle(along):
    return np.abs(along - 0.5 * LENGTH) < 10.0


@pytest.mark.parametrize("ends", [0.5, 0.25])
def test_edges_are_shorter_at_ends_at_the_ground_alone(ends):
    along, down, long, count = _edges(0.0, ends)
    outward = np.minimum(np.abs(along), np.abs(along - LENGTH))
    at_ends = (outward < 2.0) & (down < 2.0)
    usual = _typical(long, _middle(along))
    assert _typical(long, at_ends) < 1.5 * ends * usual
    # the same ends, deep below: of the depth that lengthens them
    below = (outward < 2.0) & (np.abs(down - WIDTH) < 4.0)
    assert _typical(long, below) > 0.7 * usual
    plain = _edges(0.0, 1.0)
    assert usual == pytest.approx(_typical(plain[2], _middle(plain[0])), rel=0.25)
    assert plain[3] < count


def test_edges_are_shorter_along_the_top_of_a_shallow_fault():
    along, down, long, count = _edges(2.0, 0.25)
    plain = _edges(2.0, 1.0)
    top = np.abs(down) < 1.0
    middle = top & (along > 0.0) & (along < LENGTH)
    assert _typical(long, middle) < 0.35 * SIZE.fault / KM
    lower = np.abs(down - WIDTH) < 4.0
    before = _typical(plain[2], np.abs(plain[1] - WIDTH) < 4.0)
    assert _typical(long, lower) == pytest.approx(before, rel=0.25)
    assert plain[3] < count


def test_a_fault_deeper_than_its_edges_is_meshed_as_without():
    deep = SIZE.fault / KM
    assert _edges(deep, 0.25)[3] == _edges(deep, 1.0)[3]
