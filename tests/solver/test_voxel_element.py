"""The element family: its operator, symbol, dispersion and stability."""

import numpy as np
import pytest
from voxel_cases import box, host, rock, varied

from afterslip_solver.backend.waves import Voxels, wave_steps
from afterslip_solver.waves.dispersion import courant, phase_error
from afterslip_solver.waves.element import (
    SCHEMES,
    SIGNS,
    Scheme,
    corner_offsets,
    element_matrix,
    symbol,
)
from afterslip_solver.waves.fastest import highest_frequency
from afterslip_solver.waves.sides import Sides, dampers


def assembled(grid, medium, scheme):
    """Dense stiffness of a small grid, (3 n_node, 3 n_node)."""
    nx, ny, nz = grid.shape
    found = np.zeros((3 * grid.n_node, 3 * grid.n_node))
    offsets = corner_offsets(nx, ny)
    for k, j, i in np.ndindex(nz - 1, ny - 1, nx - 1):
        own = element_matrix(
            float(medium.lam[k, j, i]), float(medium.mu[k, j, i]), grid.h, scheme
        )
        nodes = (k * ny + j) * nx + i + offsets
        rows = (nodes[:, None] + grid.n_node * np.arange(3)).ravel()
        found[np.ix_(rows, rows)] += own
    return found


def steps_of(grid, medium, scheme, real=np.float64, backend="cpu"):
    betas = scheme.beta_lam, scheme.beta_mu
    return wave_steps(
        backend, Voxels(grid.shape, grid.h, medium.lam, medium.mu, *betas), real
    )


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize(("real", "limit"), [(np.float64, 2e-15), (np.float32, 1e-6)])
@pytest.mark.parametrize(
    ("backend", "shape"),
    [
        ("cpu", (6, 5, 4)),
        # more than a tile of a GPU's block along each axis
        pytest.param("gpu", (6, 5, 4), marks=pytest.mark.gpu),
        pytest.param("gpu", (18, 10, 4), marks=pytest.mark.gpu),
        pytest.param("gpu", (4, 4, 35), marks=pytest.mark.gpu),
    ],
)
def test_the_factorised_product_is_that_of_the_assembled_matrix(
    name, real, limit, backend, shape
):
    grid = box(shape)
    medium, scheme = varied(grid, air=True), SCHEMES[name]
    u = np.random.default_rng(1).standard_normal((3, grid.n_node, 4)).astype(real)
    given = u.copy()
    steps = steps_of(grid, medium, scheme, real, backend)
    found = host(steps.force(steps.xp.asarray(u)))
    expected = assembled(grid, medium, scheme) @ u.reshape(-1, 4).astype(float)
    error = np.abs(found.reshape(-1, 4) - expected).max() / np.abs(expected).max()
    assert error < limit
    np.testing.assert_array_equal(u, given)


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_the_symbol_is_the_assembled_matrix_on_a_plane_wave(scheme):
    own = element_matrix(1.7, 0.6, 1.0, scheme).reshape(8, 3, 8, 3)
    random = np.random.default_rng(2)
    for theta, shape in zip(
        random.uniform(-3, 3, (5, 3)), random.normal(size=(5, 3)), strict=True
    ):
        phase = np.exp(1j * (SIGNS + 1) / 2 @ theta)
        force = np.einsum("aibj,b,j,a->i", own, phase, shape, phase.conj())
        np.testing.assert_allclose(
            force, symbol(theta[None], 1.7, 0.6, scheme)[0] @ shape, atol=1e-13
        )


def test_the_element_is_stiff_to_strains_alone():
    for scheme in SCHEMES.values():
        own = element_matrix(3.0, 2.0, 2.0, scheme)
        values = np.linalg.eigvalsh(own)
        # six rigid motions, and the orthogonal and selective ones add none
        assert (np.abs(values) < 1e-12 * values.max()).sum() == 6
        linear = np.einsum("ij,aj->ai", np.diag([1e-3, 0, 0]), SIGNS * 1.0).ravel()
        # uniform strain e over a cube of 8 m3: energy (lam + 2 mu) e^2 V
        assert linear @ own @ linear == pytest.approx((3.0 + 4.0) * 1e-6 * 8.0)


# worst S wave in % at 5, 7, 10, 15, 20 points, and the largest vp dt/h: a table that
# was made by a program of its own
TABLE = [
    ("trilinear", 3**0.5, [8.19, 4.20, 2.06, 0.92, 0.52], 1.000, 1.61),
    ("orthogonal", 3**0.5, [4.98, 2.51, 1.22, 0.54, 0.30], 0.986, 0.77),
    ("selective", 3**0.5, [5.05, 2.55, 1.24, 0.55, 0.31], 0.962, 0.62),
    ("orthogonal", 5.0, [57.0, 34.0, 18.0, 8.7, 5.0], 1.000, 8.8),
    ("selective", 5.0, [6.3, 3.2, 1.6, 0.71, 0.40], 1.000, 0.89),
]


@pytest.mark.parametrize(("name", "vp_vs", "worst", "step", "rms"), TABLE)
def test_dispersion_and_stability_are_those_of_the_table(name, vp_vs, worst, step, rms):
    scheme = SCHEMES[name]
    assert courant(vp_vs, scheme) == pytest.approx(step, abs=6e-4)
    for points, percent in zip((5, 7, 10, 15, 20), worst, strict=True):
        found = 100 * phase_error(points, vp_vs, scheme).s_worst
        assert found == pytest.approx(percent, rel=0.03)
    assert 100 * phase_error(10, vp_vs, scheme).s_rms == pytest.approx(rms, rel=0.02)


@pytest.mark.parametrize(
    ("vp_vs", "s", "p"),
    [(3**0.5, 0.55, 0.43), (5.0, 0.71, 1.03), (10.0, 0.72, 1.10), (50.0, 0.73, 1.12)],
)
def test_the_selective_element_holds_at_any_ratio_of_speeds(vp_vs, s, p):
    found = phase_error(15, vp_vs, SCHEMES["selective"])
    assert 100 * found.s_worst == pytest.approx(s, abs=0.006)
    assert 100 * found.p_worst == pytest.approx(p, abs=0.006)


def test_the_highest_frequency_is_that_of_the_matrix():
    grid = box((6, 6, 5))
    medium, scheme = varied(grid), SCHEMES["selective"]
    mass = medium.node_mass(grid.h)
    held = dampers(grid, medium, mass, Sides("spring_dashpot", centre=(0, 0, -1e3)))
    found = highest_frequency(steps_of(grid, medium, scheme), mass, held)
    stiffness = assembled(grid, medium, scheme)
    stiffness[held.rows, held.rows] += held.spring
    root = 1.0 / np.sqrt(np.tile(mass, 3))
    exact = np.sqrt(np.linalg.eigvalsh(root[:, None] * stiffness * root).max())
    # from below, within what the step is short of the limit
    assert 0.97 * exact < found < (1 + 1e-9) * exact


def test_mass_is_that_of_the_rock():
    grid = box((5, 4, 3))
    medium = rock(grid)
    assert medium.node_mass(grid.h).sum() == pytest.approx(2700.0 * 24 * grid.h**3)


def test_a_scheme_without_volume_hourglasses_is_softer():
    grid = box((5, 5, 5))
    medium = varied(grid)
    stiff = assembled(grid, medium, Scheme("", 0.75, 0.9))
    soft = assembled(grid, medium, SCHEMES["selective"])
    assert np.linalg.eigvalsh(stiff - soft).min() > -1e-3 * np.abs(stiff).max()
