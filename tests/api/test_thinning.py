"""Fewer nodes of faults where a figure could not show them all."""

import numpy as np
import pytest
import xarray as xr

from afterslip.thinning import thinned

LENGTH, WIDTH = 60e3, 20e3


def fault_of(columns, rows, number):
    """Nodes and triangles of a rectangle, with a gradient of slip and one peak."""
    along, down = (
        axis.ravel()
        for axis in np.meshgrid(
            np.linspace(0, LENGTH, columns), np.linspace(0, WIDTH, rows), indexing="ij"
        )
    )
    node = np.arange(columns * rows).reshape(columns, rows)
    a, b, c, d = node[:-1, :-1], node[1:, :-1], node[1:, 1:], node[:-1, 1:]
    lower, upper = np.stack([a, b, c], -1), np.stack([a, c, d], -1)
    corners = np.concatenate([lower.reshape(-1, 3), upper.reshape(-1, 3)])
    slip = np.column_stack([along / LENGTH, down / WIDTH])
    return along, down, np.full(len(along), number), slip, corners


@pytest.fixture(scope="module")
def result():
    """Two faults of 80,601 nodes, of which the second has the largest slip."""
    first, second = fault_of(301, 201, 0), fault_of(201, 100, 1)
    columns = [
        np.concatenate(parts) for parts in zip(first[:4], second[:4], strict=True)
    ]
    along, down, index, slip = columns
    slip[len(first[0]) + 7_777] = 30.0, 4.0
    corners = np.concatenate([first[4], second[4] + len(first[0])])
    node = "fault_node"
    return xr.Dataset(
        {
            "fault_along": (node, along),
            "fault_down": (node, down),
            "fault_index": (node, index),
            "fault_slip": ((node, "slip_component"), slip),
            "fault_length": ("fault", [LENGTH, LENGTH]),
            "fault_width": ("fault", [WIDTH, WIDTH]),
            "fault_triangles": (("fault_triangle", "corner"), corners),
        },
        attrs={"peak_slip": 30.3},
    )


def areas(result):
    """(n_triangle,) m2, and the fault of each."""
    place = np.column_stack([result[f"fault_{n}"].values for n in ("along", "down")])
    corners = result["fault_triangles"].values
    (a, b), (c, d) = ((place[corners[:, k]] - place[corners[:, 0]]).T for k in (1, 2))
    index = result["fault_index"].values[corners]
    assert (index == index[:, :1]).all(), "no triangle joins two faults"
    return 0.5 * np.abs(a * d - b * c), index[:, 0]


def test_a_thinned_fault_is_covered_once_and_up_to_its_edges(result):
    fewer = thinned(result, 3000)
    assert 2000 < fewer.sizes["fault_node"] < 3600
    area, index = areas(fewer)
    assert (area > 0).all()
    for number in (0, 1):
        # nodes stand up to half a step from their point of the lattice
        whole = area[index == number].sum()
        assert whole == pytest.approx(LENGTH * WIDTH, rel=0.02)
        mine = fewer["fault_index"].values == number
        for name, size in (("along", LENGTH), ("down", WIDTH)):
            place = fewer[f"fault_{name}"].values[mine]
            assert (place.min(), place.max()) == (0.0, size)


def test_values_stay_those_of_nodes_and_the_largest_slip_remains(result):
    fewer = thinned(result, 3000)
    slip = fewer["fault_slip"].values
    peak = int(np.argmax(np.hypot(*slip.T)))
    assert tuple(slip[peak]) == (30.0, 4.0)
    assert fewer["fault_index"].values[peak] == 1
    others = np.delete(np.arange(len(slip)), peak)
    place = [fewer[f"fault_{name}"].values for name in ("along", "down")]
    expected = np.column_stack([place[0] / LENGTH, place[1] / WIDTH])
    np.testing.assert_allclose(slip[others], expected[others], atol=1e-12)
    assert fewer.attrs == result.attrs


def test_a_result_with_few_nodes_is_left_as_it_is(result):
    assert thinned(result, 10**6) is result
