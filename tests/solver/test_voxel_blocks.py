"""Sizes of thread blocks of the march, chosen for a grid."""

import numpy as np
import pytest

from afterslip_solver.backend.cuda.variants import voxel_shape

GRIDS = [(4, 4, 4), (5, 40, 9), (97, 97, 97), (256, 256, 256), (601, 601, 151)]


@pytest.mark.parametrize("nodes", GRIDS)
@pytest.mark.parametrize(("real", "most"), [(np.float32, 512), (np.float64, 256)])
def test_blocks_fit_registers_and_begin_at_256_bytes(nodes, real, most):
    found = voxel_shape(real, nodes, 132)
    # 128 registers a thread in FP32 and 255 in FP64 are what a multiprocessor has
    assert found.x * found.y * (4 // found.per) <= most
    assert (found.x - 1) * 4 * np.dtype(real).itemsize % 256 == 0
    assert 1 <= found.planes <= nodes[2]
    assert found.y > 1


def test_a_small_grid_is_cut_into_more_chunks_than_a_large_one():
    small, large = (voxel_shape(np.float32, (n,) * 3, 132) for n in (97, 256))
    assert 97 / small.planes > 256 / large.planes
