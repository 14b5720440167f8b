"""The state of a campaign, derived from its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from afterslip_service.engine.states import (
    ACTIVE_JOBS,
    CampaignState,
    JobKind,
    JobState,
)

Tally = Mapping[JobState, int]


@dataclass(frozen=True, slots=True)
class JobTally:
    """What the state of a campaign is derived from.

    Attributes
    ----------
    jobs : number of jobs by kind and state.
    paused, cancelling : what an operator asked for.
    finished : the Green's functions are all accepted and marked complete.
    """

    jobs: Mapping[JobKind, Tally] = field(default_factory=dict)
    paused: bool = False
    cancelling: bool = False
    finished: bool = False

    def count(self, kinds: tuple[JobKind, ...], states: frozenset[JobState]) -> int:
        """Count the jobs of some kinds in some states."""
        return sum(self.jobs.get(k, {}).get(s, 0) for k in kinds for s in states)


_BUILD = (JobKind.MODEL, JobKind.GROUP)
_ALL = (*_BUILD, JobKind.INVERSION)
_FAILED = frozenset({JobState.FAILED})
_STARTED = ACTIVE_JOBS | {JobState.ACCEPTED}


def derive(tally: JobTally) -> CampaignState:
    """Return the state of a campaign.

    A failed inversion does not fail the campaign: its Green's functions stay
    good and a second inversion may be asked for.
    """
    if tally.cancelling and not tally.count(_ALL, ACTIVE_JOBS):
        return CampaignState.CANCELLED
    if tally.count(_BUILD, _FAILED):
        return CampaignState.FAILED
    if tally.finished:
        return CampaignState.COMPLETE
    if tally.paused:
        return CampaignState.PAUSED
    if tally.count((JobKind.MODEL,), frozenset({JobState.ACCEPTED})):
        return CampaignState.RUNNING
    if tally.count((JobKind.MODEL,), _STARTED):
        return CampaignState.BUILDING
    return CampaignState.WAITING


def greens_done(tally: JobTally) -> bool:
    """Tell whether every group is accepted, so that the store can be closed."""
    groups = tally.jobs.get(JobKind.GROUP, {})
    total = sum(groups.values())
    return total > 0 and groups.get(JobState.ACCEPTED, 0) == total
