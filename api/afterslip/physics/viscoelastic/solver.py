"""How the curves are solved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from afterslip.errors import Problem
from afterslip.schemas.base import Schema
from afterslip.schemas.values import Count, Duration, Within

# of stepping; a curve of so many takes days
MOST_STEPS = 100_000


class Solver(Schema):
    """How to solve."""

    # an estimate beside the numbers does not change them, and both precisions reach
    # the same residual
    implied: ClassVar[dict[str, Any]] = {"space_error": True, "precision": "mixed"}

    integrator: Literal["spectral", "stepping"] = Field(
        default="spectral", description="spectral: the whole curve at once"
    )
    step: Duration | None = Field(
        default=None, description="length of a step, for stepping, e.g. 1 d"
    )
    predictor: Literal["galerkin", "dmd", "adams_bashforth", "four_steps"] | None = (
        Field(default=None, description="first guess of a step, for stepping")
    )
    preconditioner: Literal["multigrid", "three_level"] = Field(
        default="multigrid", description="of the conjugate gradients"
    )
    tolerance: Annotated[float, Within("", least=1e-14, most=1e-2)] = Field(
        default=1e-8, description="relative residual of every solve"
    )
    time_tolerance: Annotated[float, Within("", least=1e-12, most=0.1)] = Field(
        default=1e-6, description="relative error of the curve"
    )
    backend: Literal["auto", "cpu", "gpu"] = Field(
        default="auto", description="auto: a GPU where there is one"
    )
    gpus: Annotated[int, Count(1, 16)] = Field(
        default=1, description="GPUs of one machine that share each group"
    )
    deterministic: bool = Field(
        default=False, description="on a GPU, add in K u always in the same order"
    )
    precision: Literal["mixed", "double"] = Field(
        default="mixed",
        description=(
            "mixed: iterate in FP32 around residuals in FP64; double: all FP64; the "
            "preconditioner is in FP32, on a GPU partly in FP16, in either"
        ),
    )
    space_error: bool = Field(
        default=True, description="estimate the error of the mesh, on a coarser one"
    )

    def accuracy_problems(self) -> Iterator[Problem]:
        """Refuse what leaves a mesh without an estimate of its error."""
        hint = "or give mesh.size in place of mesh.accuracy"
        if not self.space_error:
            message = "is needed for mesh.accuracy"
            yield Problem("space_error", False, message, f"write true, {hint}")

    def steps_problems(self, until: Duration) -> Iterator[Problem]:
        """Refuse more steps than anybody waits for.

        Parameters
        ----------
        until : end of the curve.
        """
        if self.step is None or not 0 < self.step * MOST_STEPS < until:
            return
        yield Problem(
            "step",
            self.step.text,
            f"makes {until / self.step:,.0f} steps until {until.text}, and "
            f"{MOST_STEPS:,} are the most",
            "lengthen it, or write integrator: spectral",
        )

    def problems(self) -> Iterator[Problem]:
        """Refuse what belongs to the other integrator or to one device."""
        yield from self._problems_of_parts()
        if self.integrator == "stepping":
            if self.step is None:
                yield Problem("step", None, "is missing", "stepping needs it: 1 d")
            elif self.step <= 0:
                yield Problem("step", self.step.text, "must be more than zero")
        else:
            given = {"step": self.step, "predictor": self.predictor}
            for key, value in given.items():
                if value is not None:
                    text = getattr(value, "text", value)
                    yield Problem(
                        key, text, "belongs to integrator: stepping", "remove it"
                    )

    def _problems_of_parts(self) -> Iterator[Problem]:
        if self.gpus == 1:
            return
        whole = {"backend": "cpu", "predictor": "dmd", "preconditioner": "three_level"}
        for key, value in whole.items():
            if getattr(self, key) == value:
                yield Problem(
                    key, value, "cannot be shared by several GPUs", "set gpus: 1"
                )
