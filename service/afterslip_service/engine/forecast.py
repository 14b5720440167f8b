"""How long a campaign will take, from what others have taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from statistics import median

# campaigns of about the same size that are compared with
NEAREST = 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """Times in s.

    Attributes
    ----------
    group : of one group; low, high: the fastest and the slowest of those measured.
    model : of the model, None where none was measured.
    total : until the last group, on ``slots`` groups at a time.
    worker : of all workers together.
    campaigns : how many were compared with.
    """

    group: float
    low: float
    high: float
    model: float | None
    total: float
    worker: float
    slots: int
    campaigns: int


def forecast(
    unknowns: int,
    groups: int,
    slots: int,
    measured: Sequence[tuple[int, Sequence[float], float | None]],
) -> Forecast | None:
    """Scale the times of campaigns of about the same size by their unknowns.

    Iterations hardly grow with the mesh, so that a group's time is about proportional
    to it; other tolerances and times change the number of solves, which is why the
    spread is given as well.

    Parameters
    ----------
    measured : unknowns, s of groups, s of the model, of each campaign.

    Returns
    -------
    None where nothing was measured here.
    """
    known = [item for item in measured if item[0] > 0 and item[1]]
    known.sort(key=lambda item: abs(log(item[0] / max(unknowns, 1))))
    near = known[:NEAREST]
    if not near:
        return None
    each = [unknowns * median(seconds) / size for size, seconds, _ in near]
    models = [unknowns * s / size for size, _, s in near if s is not None]
    group, model = median(each), median(models) if models else None
    rounds = ceil(groups / max(slots, 1))
    return Forecast(
        group=group,
        low=min(each),
        high=max(each),
        model=model,
        total=(model or 0.0) + rounds * group,
        worker=(model or 0.0) + groups * group,
        slots=slots,
        campaigns=len(near),
    )
