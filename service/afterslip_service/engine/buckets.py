"""Rate limits: one token bucket for each sender."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

MOST = 10_000


@dataclass(frozen=True, slots=True)
class Level:
    """How full a bucket is.

    Attributes
    ----------
    allowed : the request may pass.
    left : requests that may follow at once.
    wait : whole s until the next one may come, or until the bucket is full again.
    """

    allowed: bool
    left: int
    wait: int


class Buckets:
    """Buckets that leak ``rate`` requests a second and hold ``burst``.

    Parameters
    ----------
    rate : requests/s that may go on for ever.
    burst : requests that may come at once.
    most : buckets in memory; the one that was not used for longest goes first.
    """

    def __init__(self, rate: float, burst: int, most: int = MOST) -> None:
        self._rate = rate
        self.burst = burst
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, sender: str, now: float, cost: float = 1.0) -> Level:
        """Let a request pass, or say how long to wait.

        Parameters
        ----------
        now : s, of a clock that only goes forward.
        cost : 0 only looks.
        """
        content, then = self._buckets.pop(sender, (float(self.burst), now))
        content = min(float(self.burst), content + self._rate * (now - then))
        allowed = content >= max(cost, 1.0)
        content -= cost if allowed else 0.0
        self._buckets[sender] = (content, now)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        missing = (self.burst - content) if allowed else (1.0 - content)
        return Level(allowed, int(content), max(0, math.ceil(missing / self._rate)))
