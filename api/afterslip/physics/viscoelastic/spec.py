"""The campaign of this physics: what all campaigns have, times and how to solve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.solver import Solver, Times
from afterslip.schemas.values import Duration


class ViscoelasticCampaign(Campaign):
    """A model, its unit sources, times, data and inversions."""

    physics: Literal["viscoelastic"] = Field(
        default="viscoelastic", description="what is solved: quasi-static deformation"
    )
    times: Times = Field(description="{until, output}")
    solver: Solver = Field(default=Solver(), description="how to solve")

    @property
    def end(self) -> Duration:
        """End of the curve."""
        return self.times.until

    def problems(self) -> Iterator[Problem]:
        """Names must be known, and data not later than the curve."""
        yield from super().problems()
        for index, dataset in enumerate(self.datasets):
            if dataset.epoch > self.times.until:
                yield Problem(
                    f"datasets[{index}].epoch",
                    dataset.epoch.text,
                    f"must not be after times.until ({self.times.until.text})",
                )
