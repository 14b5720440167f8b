"""Sizes of the next mesh of a search for an accuracy."""

import pytest

from afterslip.physics.viscoelastic.sizing import ENDS
from afterslip_workers.engines.viscoelastic.accuracy import Factors
from afterslip_workers.engines.viscoelastic.error_shares import Shares


def test_meshes_do_not_follow_the_last_digits_of_estimates():
    asked = 0.01
    one, other = (
        Factors().after([Shares(error), Shares(1.1 * error, 2.0 * error)], asked)
        for error in (0.02, 0.02 * (1.0 + 3e-11))
    )
    assert one == other
    # nor those of distances
    near = [Factors().finer_at_ends(asked, 0.3 * (1.0 + e)) for e in (0.0, 3e-11)]
    assert near[0] == near[1] != Factors()


def test_ends_of_slip_are_as_fine_as_the_nearest_point_is_near():
    asked = 0.01
    edges = 0.5
    factors = Factors(edges)
    # edges there of 0.8 of the distance at 1 %, over those on faults
    finer = factors.finer_at_ends(asked, 0.2)
    assert ENDS * finer.ends * edges == pytest.approx(0.8 * 0.2, rel=1e-5)
    assert (finer.edges, finer.away) == (edges, 1.0)
    assert factors.finer_at_ends(asked, 2.0) == factors
    # not ever finer, for a point on the very end
    assert factors.finer_at_ends(asked, 0.0).ends == pytest.approx(0.25)
    assert factors.finer_at_ends(0.1 * asked, 0.2).ends < finer.ends


def test_all_edges_become_shorter_where_those_on_faults_did_not_help():
    found = [Shares(0.02 * 1.3**k) for k in (4, 3, 2, 1, 0)]
    factors = Factors().after(found, 0.01)
    assert factors.edges == factors.away == pytest.approx((0.9 / 2) ** 0.5, rel=1e-5)


def test_growth_follows_at_once_where_shorter_edges_leave_the_elastic_error():
    helped = Factors().after([Shares(0.03), Shares(0.02)], 0.01)
    assert helped.edges == pytest.approx((0.9 / 2) ** 0.5, rel=1e-5)
    assert helped.away == 1.0
    in_vain = Factors().after([Shares(0.03), Shares(0.028)], 0.01)
    assert in_vain.edges == in_vain.away == pytest.approx((0.9 / 2.8) ** 0.5, rel=1e-5)


def test_growth_does_not_follow_errors_that_are_only_beside_a_trace():
    found = [Shares(0.018, None, 0.009), Shares(0.015, None, 0.008)]
    factors = Factors().after(found, 0.01)
    assert factors.edges == pytest.approx((0.9 / 1.5) ** 0.5, rel=1e-5)
    assert factors.away == 1.0
    # farther away they are too large as well, and have not fallen
    both = Factors().after(
        [Shares(0.015, None, 0.012), Shares(0.018, None, 0.012)], 0.01
    )
    assert both.away == both.edges


def test_one_mesh_that_errs_more_than_coarser_ones_does_not_make_the_next_much_finer():
    found = [Shares(error) for error in (0.024, 0.019, 0.0117, 0.0101, 0.035)]
    factors = Factors().after(found, 0.01)
    # as after the fourth alone, whose error was the smallest
    assert factors == Factors().after(found[:4], 0.01)
    assert factors.edges == pytest.approx((0.9 / 1.01) ** 0.5, rel=1e-5)
    # parts of one mesh, of which one is too large: it is never made again as it was
    both = Factors().after([Shares(0.009, 0.012), Shares(0.013, 0.008)], 0.01)
    assert both != Factors()
