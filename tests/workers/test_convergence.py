"""Sizes of a mesh are what decides on its error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import convergence


def test_halving_all_sizes_at_a_fault_that_breaks_the_surface_converges():
    """A vertical strike-slip fault against Okada (1985); 5.8 times was measured."""
    problem = convergence.PROBLEMS["strike-slip"]
    (before, fewer), (after, more) = convergence.errors(problem, (2.0, 1.0))
    assert before / after > 3.0
    # not by more than eight times the elements
    assert more < 8 * fewer
