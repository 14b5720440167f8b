"""Time stepping of creep, exact for a constant strain rate in each step.

Algorithm 1 of Murakami et al. (2023) in its exponential form, see `LocalStep`: second
order in dt and stable for any dt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend import Backend
from afterslip_solver.greens.local import LocalStep
from afterslip_solver.greens.predictor import make_predictor
from afterslip_solver.greens.run import Modes, Run, Solvable
from afterslip_solver.model import Float
from afterslip_solver.operators import Creep


def recorded_steps(times: Float, step: float, n_step: int, limit: int) -> list[int]:
    """Choose the steps that are kept: around the output times, then others.

    Parameters
    ----------
    times : s, output times. step : s. n_step : last step.
    limit : number of steps to keep at most.
    """
    position = np.clip(np.asarray(times) / step, 0, n_step)
    nearest = np.round(position).astype(int)
    wanted = [int(k) for k in nearest]
    away = np.abs(position - nearest) > 1e-6
    wanted += [int(k) for k in np.floor(position[away])]
    wanted += [int(k) for k in np.ceil(position[away])]
    # early steps change most: spread the others evenly in the square root of time
    filling = np.unique(
        np.round(n_step * np.linspace(0.0, 1.0, limit) ** 2).astype(int)
    )
    keep = list(dict.fromkeys([0, n_step, *wanted]))[:limit]
    for k in filling:
        if len(keep) >= limit:
            break
        if int(k) not in keep:
            keep.append(int(k))
    return sorted(keep)


@dataclass(frozen=True, slots=True)
class Stepping:
    """Exponential stepping with a predictor, ready for many groups.

    Attributes
    ----------
    local : the step at a point. system : its K^v. times : s, output times.
    step : s. n_step : number of steps. max_modes : steps kept at most.
    """

    backend: Backend
    creep: Creep
    local: LocalStep
    system: Solvable
    times: Float
    step: float
    n_step: int
    predictor: str
    max_modes: int

    def integrate(self, run: Run, elastic: Float, strain: Any) -> Modes:
        """Step from the elastic solution; see `Spectral.integrate`."""
        modes = Modes([elastic], step_times=[0.0])
        backend, creep, local = self.backend, self.creep, self.local
        stress = local.start(strain)
        predictor = make_predictor(self.predictor, self.system.operator)
        keep = set(recorded_steps(self.times, self.step, self.n_step, self.max_modes))
        # zeros_like of nodal vectors: sum of increments on all nodes, FP64
        total = backend.xp.zeros(self.system.operator.shape)
        remainder = backend.xp.zeros_like(total)
        reference = None
        run.expected = len(run.history) + self.n_step
        for number in range(1, self.n_step + 1):
            f = local.load(stress) * self.system.operator.free
            # what the last solve left unbalanced is not forgotten
            f += remainder
            if reference is None:
                reference = np.sqrt(backend.dot(f, f))
            result = run.solve(
                self.system, f, "stepping", predictor.guess(f), reference
            )
            if not run.going():
                break
            predictor.learn(result.values)
            remainder = result.remainder
            total += result.values
            local.advance(stress, creep.strain(result.values))
            if number in keep:
                modes.response.append(elastic + run.trace_of(total))
                modes.step_times.append(number * self.step)
        modes.mode_count[:] = len(modes.response)
        return modes
