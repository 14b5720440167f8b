"""Which process is killed when: drawn from a seed, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

# how often each is meant: what computes dies most
WEIGHTS = {
    "child": 6,
    "worker": 4,
    "nanny": 1.5,
    "machine": 1,
    "leader": 2,
    "standby": 1,
    "api": 1.5,
    "scheduler": 0.7,
}
SHORTEST_S, LONGEST_S = 0.3, 2.0
# leases last 5 s here, and an attempt without a heartbeat is given up after 8 s
PAUSES_S = (0.5, 14.0)
PAUSE_SHARE = 0.15
AIMED_SHARE = 0.5
# so often all processes are left alone for a while
LULL_SHARE, LULL_S = 0.03, (4.0, 10.0)


@dataclass(frozen=True, slots=True)
class Draw:
    """One thing to do to a process.

    Attributes
    ----------
    number : from 1 on.
    wait_s : from the kill before until this one, s.
    role : whose process, see `WEIGHTS`.
    rank : in [0, 1), chooses among the processes of the role.
    pause_s : how long it is stopped and then continued; 0 to kill it.
    aimed : wait for a moment at which a result is handed over.
    """

    number: int
    wait_s: float
    role: str
    rank: float
    pause_s: float
    aimed: bool


def draws(seed: int) -> Iterator[Draw]:
    """Yield what a seed asks for, always the same and whatever the processes do."""
    source = random.Random(seed)
    number = 0
    while True:
        number += 1
        wait = source.uniform(SHORTEST_S, LONGEST_S)
        lull = source.uniform(*LULL_S)
        (role,) = source.choices(list(WEIGHTS), list(WEIGHTS.values()))
        rank, paused = source.random(), source.random() < PAUSE_SHARE
        pause = source.uniform(*PAUSES_S)
        aimed = source.random() < AIMED_SHARE
        if source.random() < LULL_SHARE:
            wait += lull
        yield Draw(number, wait, role, rank, pause if paused else 0.0, aimed)
