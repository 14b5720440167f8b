"""Forces in integers: exact on the CPU, and the same bits on a GPU's tensor cores."""

from fractions import Fraction

import numpy as np
import pytest
from voxel_cases import box, host, rock, varied

from afterslip_solver.backend.base import BackendError
from afterslip_solver.backend.cpu.digits import (
    bits,
    column_forces,
    integer_matrices,
    to_digits,
    to_integers,
)
from afterslip_solver.backend.waves import Voxels, wave_steps
from afterslip_solver.waves.element import SCHEMES, element_matrix

DIGITS = range(3, 8)
# relative, of 2-norms; 7: of FP64's own rounding
LIMITS = {3: 4e-7, 4: 2e-9, 5: 7e-12, 6: 3e-14, 7: 3e-16}


def steps_of(grid, medium, digits, backend="cpu", scheme="orthogonal"):
    own = SCHEMES[scheme]
    betas = own.beta_lam, own.beta_mu
    voxels = Voxels(grid.shape, grid.h, medium.lam, medium.mu, *betas)
    return wave_steps(backend, voxels, np.float64, digits)


def test_the_stiffness_is_two_matrices_of_integers_of_seven_bits():
    first, second = integer_matrices()
    assert max(abs(first).max(), abs(second).max()) < 128
    whole = 3.0 / 256 * ((2.0 + 2 * 1.3) * first + 1.3 * second)
    exact = element_matrix(2.0, 1.3, 3.0, SCHEMES["orthogonal"])
    assert whole == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("digits", DIGITS)
def test_digits_are_signed_bytes_whose_sum_is_the_number(digits):
    most = 2 ** bits(digits)
    random = np.random.default_rng(0)
    whole = np.append(random.integers(-most, most, 500), [-most, most, 0, 128, -128])
    found = to_digits(whole, digits)
    assert found.min() >= -128
    assert found.max() <= 127
    total = sum(int(256**place) * part for place, part in enumerate(found))
    assert np.array_equal(total, whole)


def test_seven_digits_give_the_nearest_numbers_to_the_exact_sums():
    u = np.random.default_rng(1).standard_normal((24, 6))
    first = integer_matrices()[0]
    got = column_forces(u, np.ones(6), np.zeros(6), 7)
    # integers of 53 bits are these values where they share the largest one's exponent
    integers, worth = to_integers(u, 7)
    for row in range(24):
        for column in range(6):
            exact = sum(
                Fraction(int(first[row, k]) * int(integers[k, column]))
                for k in range(24)
            )
            assert got[row, column] == float(exact) * worth[column]


@pytest.mark.parametrize("digits", DIGITS)
def test_the_error_falls_with_digits_to_that_of_fp64(digits):
    random = np.random.default_rng(2)
    u = random.standard_normal((24, 400))
    # lanes do not disturb each other
    u *= 10.0 ** random.uniform(-200, 200, 400)
    k = element_matrix(2.0, 1.3, 1.0, SCHEMES["orthogonal"]).astype(np.longdouble)
    exact = k @ u.astype(np.longdouble)
    whole, shear = np.full(400, 4.6 / 256), np.full(400, 1.3 / 256)
    got = column_forces(u, whole, shear, digits)
    error = np.linalg.norm((got - exact) / np.linalg.norm(exact, axis=0))
    assert error / np.sqrt(400) < LIMITS[digits]


def test_zeros_tiny_numbers_and_nan_pass_through():
    u = np.zeros((24, 3))
    u[3, 1], u[5, 2] = 5e-324, np.nan
    got = column_forces(u, np.ones(3), np.ones(3), 7)
    assert not got[:, :2].any()
    assert np.isnan(got[:, 2]).all()


def test_a_step_is_that_of_fp64_to_rounding():
    grid = box((6, 5, 4))
    medium = varied(grid, air=True)
    u = np.random.default_rng(3).standard_normal((3, grid.n_node, 4))
    found = [steps_of(grid, medium, digits).force(u.copy()) for digits in (0, 7)]
    assert np.abs(found[1] - found[0]).max() < 2e-15 * np.abs(found[0]).max()


@pytest.mark.gpu
@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("shape", [(6, 5, 4), (35, 20, 40)])
def test_tensor_cores_find_the_bits_of_the_cpu(digits, shape):
    grid = box(shape)
    medium = varied(grid, air=True)
    u = np.random.default_rng(4).standard_normal((3, grid.n_node, 4))
    u *= 10.0 ** np.random.default_rng(5).uniform(-9, 9, (3, grid.n_node, 4))
    mass = np.tile(medium.node_mass(grid.h), 3)
    inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
    nothing = np.zeros(0)
    found = []
    for backend in ("cpu", "gpu"):
        steps = steps_of(grid, medium, digits, backend)
        force = host(steps.force(steps.xp.asarray(u.copy())))
        steps.prepare(0.01, inverse, (nothing.astype(int), nothing, nothing))
        steps.begin(np.zeros(0, dtype=int), np.zeros((0, 4)))
        steps.restore({"u": u.copy(), "v": np.zeros_like(u)})
        for _ in range(3):
            steps.step(0.0)
        found.append((force, *(steps.state()[name] for name in "uv")))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


def test_elements_that_are_not_of_integers_and_digits_beyond_seven_are_refused():
    grid = box((4, 4, 4))
    with pytest.raises(BackendError, match=r"weights 0 and 0\.9 make no integers"):
        steps_of(grid, rock(grid), 7, scheme="selective")
    for digits in (2, 8):
        with pytest.raises(BackendError, match=f"{digits} digits: write 3 to 7"):
            steps_of(grid, rock(grid), digits)
