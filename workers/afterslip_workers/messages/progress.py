"""How far an attempt is: rewritten in its folder while it lives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from afterslip_workers.messages.base import Name, Versioned, read


class Progress(Versioned):
    """Progress of an attempt, which is its sign of life as well.

    Attributes
    ----------
    token : of the attempt.
    phase : what it does, for people.
    solves_done, solves_expected : linear solves; None where nothing is known.
    iteration : of the solve under way; None where an engine does not iterate.
    residual : relative, of the solve under way, the largest of its lanes.
    lane_residuals : of each lane.
    updated : s since 1970; changes at least every 2 s while the attempt lives.
    """

    token: Name
    phase: str = "starting"
    solves_done: int | None = None
    solves_expected: int | None = None
    iteration: int | None = None
    residual: float | None = None
    lane_residuals: list[float] | None = None
    updated: float


_FORM = TypeAdapter(Progress)


def read_progress(content: Mapping[str, Any]) -> Progress:
    """Read progress; that of 0.1.0 has no version.

    Raises
    ------
    TaskError
        Class ``other_release`` for another version; class ``internal`` for content
        that is no progress.
    """
    return read(_FORM, content, "progress", "service")
