"""Times at which a response is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pydantic import Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema
from afterslip.schemas.values import Duration


class Times(Schema):
    """When the response is wanted, counted from the event."""

    until: Duration = Field(description="end of the curve, e.g. 10 yr")
    output: list[Duration] = Field(
        min_length=1, max_length=10000, description="times to write, e.g. [0 d, 1 yr]"
    )

    def problems(self) -> Iterator[Problem]:
        """Output times grow and end by ``until``."""
        for index, time in enumerate(self.output):
            if time > self.until:
                yield Problem(
                    f"output[{index}]",
                    time.text,
                    f"must not be after until ({self.until.text})",
                )
        for index, (first, second) in enumerate(pairwise(self.output)):
            if second <= first:
                yield Problem(
                    f"output[{index + 1}]",
                    second.text,
                    f"must be after the one before it ({first.text})",
                    "order the times, each once",
                )
