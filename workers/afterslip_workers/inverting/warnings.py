"""What a reader of an inversion's result must know before trusting it."""

from __future__ import annotations

from collections.abc import Sequence

from afterslip_solver.inversion import InversionSolution

FEW_DRAWS = 50
WARNING = "warning: "
MANY_AT_BOUNDS = 0.25
"""Share of the slips from which a warning says that bounds shape the intervals."""


def warnings_of(solution: InversionSolution, notes: Sequence[str] = ()) -> list[str]:
    """Sentences for the result and its report.

    Parameters
    ----------
    notes : of the model; those that begin with "warning" are passed on.
    """
    said = [solution.advice] if solution.advice else []
    said += [n.removeprefix(WARNING) for n in notes if n.startswith(WARNING)]
    hidden = int(solution.unseen.sum())
    if hidden:
        said.append(
            f"{hidden} of {len(solution.unseen)} sources are hardly resolved: "
            "their slip comes from the smoothness"
        )
    table = solution.cross_validation
    if table is not None and table.contradicts:
        said.append(
            f"data held out prefer smoothness {table.smoothness[table.best]:.3g} "
            f"to the chosen {solution.smoothness:.3g} "
            f"(score {table.score[table.best]:.3g}, "
            f"not {table.score[table.chosen]:.3g}): "
            "the errors may be correlated, or the model may miss something"
        )
    if solution.posterior is not None and solution.posterior.effective < FEW_DRAWS:
        said.append(
            f"the draws count as {solution.posterior.effective:.0f} independent ones: "
            "limits of intervals are rough"
        )
    near = solution.near_bound
    if solution.posterior is not None and near.mean() >= MANY_AT_BOUNDS:
        said.append(
            f"{near.sum()} of {len(near)} slips lie within a standard deviation of a "
            "bound, which shapes their intervals: where slip is rougher than its "
            "prior, the interval of Mw holds the truth less often than it says"
        )
    if solution.posterior is None:
        said.append("no intervals: they are not drawn where slip is sparse or free")
    return said
