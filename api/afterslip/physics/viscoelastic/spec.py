"""Specs of this physics: what those of all have, times and how to solve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.physics.viscoelastic.solver import Solver
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.forward import Forward
from afterslip.schemas.times import Times
from afterslip.schemas.values import Duration

_ZERO = Duration(0.0, "0 d")


def _of_solver(spec: ViscoelasticCampaign | ViscoelasticForward) -> Iterator[Problem]:
    """Refuse what `solver` cannot do for this mesh and these times."""
    found = list(spec.solver.steps_problems(spec.times.until))
    if spec.model.mesh.accuracy is not None:
        found += spec.solver.accuracy_problems()
    for problem in found:
        yield problem.under("solver")


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
        yield from _of_solver(self)
        for index, dataset in enumerate(self.datasets):
            if dataset.epoch > self.times.until:
                yield Problem(
                    f"datasets[{index}].epoch",
                    dataset.epoch.text,
                    f"must not be after times.until ({self.times.until.text})",
                )


class ViscoelasticForward(Forward):
    """A model, slip on its faults, points and times where the motion is wanted."""

    physics: Literal["viscoelastic"] = Field(
        default="viscoelastic", description="what is solved: quasi-static deformation"
    )
    times: Times = Field(
        default=Times(until=_ZERO, output=[_ZERO]), description="{until, output}"
    )
    solver: Solver = Field(default=Solver(), description="how to solve")

    def problems(self) -> Iterator[Problem]:
        """Beside those of all runs, what the solver cannot do."""
        yield from super().problems()
        yield from _of_solver(self)
