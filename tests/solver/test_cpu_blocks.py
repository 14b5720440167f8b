"""Products, residuals and smoothing steps of block matrices against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import bsr_array, random_array

from afterslip_solver import backend as backends

N, M = 300, 290


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def backend(request):
    return backends.get("cpu", threads=request.param)


@pytest.fixture
def rng():
    return np.random.default_rng()


def case(backend, rng, rows, columns, real, shape=(N, M)):
    """A random matrix with empty rows, on the host in FP64 and on the backend."""
    graph = random_array(shape, density=0.03, rng=rng, format="csr")
    graph = graph * (rng.random((shape[0], 1)) > 0.1)
    graph = graph.tocsr()
    data = rng.standard_normal((graph.nnz, rows, columns)).astype(real)
    sizes = shape[0] * rows, shape[1] * columns
    arrays = data.astype(np.float64), graph.indices, graph.indptr
    host = bsr_array(arrays, shape=sizes)
    return host, backend.blocks(graph.indptr, graph.indices, data, shape[1])


def vector(rng, n, size, real):
    return rng.standard_normal((n, size, 4)).astype(real)


def dense(a, x):
    return (a @ x.astype(np.float64).reshape(-1, 4)).reshape(-1, 4)


@pytest.mark.parametrize(("real", "error"), [(np.float32, 3e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("sizes", [(3, 3), (3, 6), (6, 3), (6, 6)])
def test_products_are_those_of_scipy(backend, rng, sizes, real, error):
    rows, columns = sizes
    a, matrix = case(backend, rng, rows, columns, real)
    x, b = vector(rng, M, columns, real), vector(rng, N, rows, real)
    exact = dense(a, x)
    size = np.abs(exact).max()
    for name, expected in (
        ("multiply", exact),
        ("add_product", b.reshape(-1, 4) + exact),
        ("residual", b.reshape(-1, 4) - exact),
    ):
        out = b.copy() if name == "add_product" else np.full_like(b, np.nan)
        first = (b,) if name == "residual" else ()
        getattr(backend, name)(matrix, *first, x, out)
        assert np.abs(out.reshape(-1, 4) - expected).max() < error * size


@pytest.mark.parametrize("size", [3, 6])
def test_a_smoothing_step_is_its_formula(backend, rng, size):
    a, matrix = case(backend, rng, size, size, np.float32, (N, N))
    inverse = rng.standard_normal((N, size, size)).astype(np.float32)
    x, b = (vector(rng, N, size, np.float32) for _ in range(2))
    out = np.full_like(x, np.nan)
    backend.relax(matrix, inverse, b, x, 0.3, out)
    residual = b - dense(a, x).reshape(b.shape)
    expected = x + 0.3 * np.einsum("nij,njl->nil", inverse, residual)
    assert np.abs(out - expected).max() < 3e-6 * np.abs(expected).max()


def test_an_inner_product_of_single_precision_is_summed_in_double(backend, rng):
    for n in (1, 1365, 5000):
        a, b = (vector(rng, n, 3, np.float32) for _ in range(2))
        exact = (a.astype(np.float64) * b).sum(axis=(0, 1))
        scale = np.abs(a.astype(np.float64) * b).sum(axis=(0, 1))
        assert (np.abs(backend.dot(a, b) - exact) < 1e-14 * scale).all()
