"""Settings of a group that did not converge before."""

from afterslip_solver.model import SolverSettings
from afterslip_workers.engines.viscoelastic.settings import stricter


def test_group_that_did_not_converge_gets_more_iterations_by_multigrid():
    known = SolverSettings(preconditioner="three_level", max_iterations=100)
    assert stricter(known, 0) == known
    once, twice = stricter(known, 1), stricter(known, 2)
    assert (once.preconditioner, once.max_iterations) == ("multigrid", 400)
    assert (twice.preconditioner, twice.max_iterations) == ("multigrid", 1600)
    assert once.tolerance == known.tolerance
