"""What sides send back of long plane waves that meet them head-on."""

import numpy as np
import pytest
from voxel_cases import VP, VS, box, rock

from afterslip_solver.waves.sides import Sides, dampers


def reflected(sides, speed, wave, axis):
    """Share of a wave's amplitude that comes back.

    Parameters
    ----------
    speed : m/s, along x. wave : wavelength in voxels. axis : of the motion.
    """
    grid = box((40, 43, 22))
    medium = rock(grid)
    mass = medium.node_mass(grid.h)
    held = dampers(grid, medium, mass, sides)
    dashpot = np.zeros(3 * grid.n_node)
    dashpot[held.rows] = held.dashpot
    # along x, on the plane below the ground, beyond the reach of the other sides
    line = grid.node(
        np.stack([np.arange(40), np.full(40, 21), np.full(40, 20)], axis=1)
    )
    dashpot, mass = dashpot[axis * grid.n_node + line], mass[line]
    stiffness = mass[20] * (speed / grid.h) ** 2
    phase = 2 * np.pi / wave
    omega = 2 * speed / grid.h * np.sin(phase / 2)
    # from the end inwards: the node before follows from the balance of each node
    u = np.zeros(41, dtype=complex)
    u[39] = 1.0
    for i in range(39, 20, -1):
        outer = stiffness * (u[i + 1] - u[i]) if i < 39 else 0.0
        own = -(omega**2) * mass[i] + 1j * omega * dashpot[i]
        u[i - 1] = u[i] + (own * u[i] - outer) / stiffness
    waves = np.exp(1j * phase * np.outer([20, 21], [-1, 1]))
    to, back = np.linalg.solve(waves, u[[20, 21]])
    return abs(back / to)


# in %, at wavelengths of 0.5 to 10 times the sponge, as docs/waves.md has them
TABLE = [
    (VP, 0, [0.1, 1.4, 6.8, 17, 44, 62]),
    (VS, 1, [0.1, 3.2, 13, 22, 47, 70]),
]


@pytest.mark.parametrize(("speed", "axis", "percent"), TABLE, ids=["P", "S"])
def test_a_sponge_reflects_waves_that_are_longer_than_itself(speed, axis, percent):
    for times, expected in zip((0.5, 1, 1.5, 2, 4, 10), percent, strict=True):
        found = 100 * reflected(Sides("sponge", 10), speed, 10.0 * times, axis)
        assert found == pytest.approx(expected, rel=0.03, abs=0.06)
        if times >= 1:
            wider = 100 * reflected(Sides("sponge", 18), speed, 18.0 * times, axis)
            # sums of the profile over 10 and 18 depths: 15 and 8 % above its integral
            assert wider == pytest.approx(found, rel=0.15)


@pytest.mark.parametrize(("speed", "axis"), [(VP, 0), (VS, 1)], ids=["P", "S"])
def test_the_longest_waves_meet_a_sponge_as_one_dashpot(speed, axis):
    # that of the side and, by the profile, log(50) vp / c of it from the sponge
    impedance = 1.0 + np.log(50.0) * VP / speed
    expected = (impedance - 1.0) / (impedance + 1.0)
    found = reflected(Sides("sponge", 10), speed, 1000.0, axis)
    # the squares of ten depths sum to 3.85, where their integral is 3.33
    assert expected < found < 1.05 * expected


@pytest.mark.parametrize(("speed", "axis"), [(VP, 0), (VS, 1)], ids=["P", "S"])
def test_dashpots_alone_take_out_what_meets_them_head_on(speed, axis):
    for wave, most in ((5, 0.11), (10, 0.026), (20, 0.0065), (100, 0.0005)):
        assert reflected(Sides("spring_dashpot"), speed, wave, axis) < most
