"""Smoothing of some rows of a stiffness alone, beside dense algebra in FP64."""

from typing import cast

import numpy as np
import pytest
from scipy.sparse import bsr_array

from afterslip_solver import backend as backends
from afterslip_solver.backend.protocols import LocalRows
from afterslip_solver.multigrid.hierarchy import free_inverse
from afterslip_solver.multigrid.local_smoothing import rows_of_stiffness

GAIN = 0.6
# of what is added to a row: FP32, and FP16 with sums of thirty blocks
SINGLE, HALF = 1e-5, 3e-3


def relaxed(small, box, moduli, name, factor=1.0):
    """The largest error of a row over what is added to it; the others' change.

    ``factor`` multiplies the inverse diagonal blocks.
    """
    backend = cast("LocalRows", backends.get(name))
    k = small.elasticity(box.mesh, box.fixed, *moduli, backend)
    space, unit = k.space, k.unit
    chosen = np.arange(len(space.elements)) % 5 > 0
    outside = np.zeros(space.n_node, dtype=bool)
    outside[space.elements[~chosen]] = True
    rows = np.flatnonzero(~outside)
    assert 20 < len(rows) < space.n_node
    blocks = factor * free_inverse(k.diagonal, unit, space)
    inverse = backend.asarray(blocks, np.float32)
    assembled = rows_of_stiffness(k, unit, chosen, rows)
    own = (values[chosen] for values in k.moduli)
    matrix = backend.stiffness_rows(rows, assembled, inverse, *own)
    assert (matrix.n_rows, matrix.n_columns) == (len(rows), space.n_node)

    rng = np.random.default_rng(4)
    b, x = rng.standard_normal((2, space.n_node, 3, 4)).astype(np.float32)
    x[space.fixed] = 0.0
    # forces of a row are of its stiffness
    soft = np.trace(backend.to_host(inverse), axis1=1, axis2=2)
    b[soft > 0.0] /= soft[soft > 0.0, None, None]
    matrix_of_all = bsr_array((k.host.data, k.host.indices, k.host.indptr))
    force = matrix_of_all @ x.astype(np.float64).reshape(-1, 4) / unit
    r = b - force.reshape(x.shape)
    step = GAIN * np.einsum("nij,njl->nil", backend.to_host(inverse), r)
    right, smoothed = (backend.asarray(v.copy()) for v in (b, x))
    spare = backend.xp.zeros_like(smoothed)
    backend.relax_rows(matrix, right, smoothed, GAIN, spare)
    found = backend.to_host(smoothed).astype(np.float64) - x
    size = np.abs(step).max(axis=(1, 2))
    moving = rows[size[rows] > 0]
    error = np.abs(found - step).max(axis=(1, 2))[moving] / size[moving]
    return error.max(), np.abs(np.delete(found, rows, axis=0)).max()


def uneven(box):
    """Moduli with one half of the box a hundred thousandth of the other."""
    centre = box.mesh.nodes[box.mesh.cells].mean(axis=1)
    factor = np.where(centre[:, 0] > 0, 1e-5, 1.0)
    return factor * box.lam, factor * box.mu


def test_some_rows_are_relaxed_and_no_others(small, shaken_box):
    error, others = relaxed(small, shaken_box, uneven(shaken_box), "cpu")
    assert error < SINGLE
    assert others == 0.0


@pytest.mark.gpu
class TestOnTheGpu:
    def test_soft_rows_are_relaxed_as_well_as_stiff_ones_in_half(
        self, small, shaken_box
    ):
        error, others = relaxed(small, shaken_box, uneven(shaken_box), "gpu")
        assert SINGLE < error < HALF
        assert others == 0.0

    def test_nearly_incompressible_rows_are_not_in_half(self, small, shaken_box):
        mu = shaken_box.mu
        error, others = relaxed(small, shaken_box, (1000.0 * mu, mu), "gpu")
        assert error < SINGLE
        assert others == 0.0

    def test_rows_with_numbers_too_large_for_half_are_not_in_half(
        self, small, shaken_box
    ):
        # rows are divided by what their diagonals seem to be
        moduli = shaken_box.lam, shaken_box.mu
        error, others = relaxed(small, shaken_box, moduli, "gpu", factor=1e6)
        assert error < SINGLE
        assert others == 0.0
