"""How long a planned campaign will take, from those that were solved here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from afterslip.physics.base import Work
from afterslip_service.db import measured
from afterslip_service.db.measured import Measured
from afterslip_service.engine.forecast import Forecast, forecast
from afterslip_service.http.deps import Service


def expected(
    service: Service,
    work: Work,
    groups: int,
    needs: Mapping[str, Any],
    others: Sequence[Measured],
) -> Forecast | None:
    """Return the times, None where nothing like it was measured.

    Parameters
    ----------
    needs : what `entry.plan` answered; empty where no engine here can say.
    others : campaigns of the same physics.
    """
    if not needs:
        return None
    slots = service.placement.slots() if service.placement is not None else 0
    times = {other.id: other.group_s for other in others}
    if needs.get("steps"):
        # their number is known, of a group and of the runs that all groups share
        steps = needs["steps"] * work.runs.get(work.way, groups) / groups
        with service.database.read() as connection:
            paces = measured.step_s(connection, list(times))
        times = {identity: (pace * steps,) for identity, pace in paces.items()}
    timed = [
        (other.unknowns, times.get(other.id, ()), other.model_s) for other in others
    ]
    return forecast(needs["unknowns"], groups, max(slots, 1), timed)
