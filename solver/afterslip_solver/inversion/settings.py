"""How to choose and solve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from afterslip_solver.inversion.problem import InversionError
from afterslip_solver.inversion.regularisers import Laplacian, Regulariser

Choice = Literal["evidence", "cross_validation", "one_standard_error"]


@dataclass(frozen=True, slots=True)
class InversionSettings:
    """How to choose and solve.

    Attributes
    ----------
    smoothness, sparsity : lambda and mu of the objective, or "auto". Sparsity has no
        evidence: where it is not zero, cross-validation chooses.
    choice : how a weight is chosen: by "evidence" (the median of the posterior, with
        the signs and the data's variances in it, checked against folds), by the least
        score of "cross_validation", or as the smoothest weight within
        "one_standard_error" of that.
    folds : number of folds of the cross-validation; 0 for none.
    repeats : how often stations are dealt anew into folds, each time from a new seed.
    grouping : "scattered" deals stations at random (seeded) within their kind,
        "blocks" cuts the map into compact blocks.
    seed : of the dealing and of the draws; the same seed gives the same result.
    draws : from the posterior; 0 for none, without choice by evidence.
    regulariser : prior of slip, whose precision smoothness multiplies.
    max_iterations : of the interior-point solver, for one problem.
    """

    smoothness: float | Literal["auto"] = "auto"
    sparsity: float | Literal["auto"] = 0.0
    choice: Choice = "evidence"
    folds: int = 5
    repeats: int = 1
    grouping: Literal["scattered", "blocks"] = "scattered"
    seed: int = 0
    draws: int = 1000
    regulariser: Regulariser = field(default_factory=Laplacian)
    max_iterations: int = 200

    @property
    def by_folds(self) -> bool:
        """Whether cross-validation chooses a weight."""
        if self.sparsity == "auto":
            return True
        evident = self.choice == "evidence" and self.sparsity == 0.0
        return self.smoothness == "auto" and not evident

    @property
    def by_evidence(self) -> bool:
        """Whether the posterior chooses the smoothness."""
        return self.smoothness == "auto" and not self.by_folds

    def check(self, n_station: int) -> None:
        """Refuse settings that do not fit the problem (InversionError)."""
        for name in ("smoothness", "sparsity"):
            value = getattr(self, name)
            if value != "auto" and not (np.isfinite(value) and value >= 0):
                raise InversionError(
                    f"{name} is {value!r}: give 'auto' or a number that is not negative"
                )
        if self.folds < 0 or self.folds == 1 or (self.by_folds and self.folds == 0):
            raise InversionError(
                f"folds is {self.folds}: choosing a weight needs at least 2 folds, of "
                "whole stations: give data of more stations, or smoothness and "
                "sparsity as numbers"
            )
        if self.by_evidence and self.draws < 1:
            raise InversionError("draws is 0: choosing by evidence needs some")
        if self.repeats < 1:
            raise InversionError(f"repeats is {self.repeats}: give 1 or more")
        if self.folds > n_station:
            raise InversionError(
                f"folds is {self.folds} but there are only {n_station} stations with "
                f"data: use at most {n_station} folds, or fix smoothness and sparsity"
            )
