"""How much more probable one model makes the data than another.

Green's functions of two earths, the same unknowns with the same prior and signs, the
same data: the ratio of the evidences needs neither's normalisation. Slip, smoothness
and variances are drawn along a path on which the logarithm of the likelihood goes from
the one's to the other's,

    log p(d | a, beta) = (1 - beta) log p_0(d | a) + beta log p_1(d | a),
    log B = integral over beta from 0 to 1 of <log p_1(d | a) - log p_0(d | a)>_beta

(path sampling: Gelman & Meng 1998, Stat. Sci. 13, 163). Bounds stay exact, and priors
that have no scale cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from afterslip_solver.inversion.hierarchy import Hierarchy, effective_size, sample
from afterslip_solver.inversion.normal import (
    Quadratic,
    normal_equations,
    roughness_of,
)
from afterslip_solver.inversion.nuisance import nuisance_of
from afterslip_solver.inversion.posterior import hierarchy_of, start_of
from afterslip_solver.inversion.problem import InversionError, InversionProblem
from afterslip_solver.inversion.settings import InversionSettings
from afterslip_solver.model import Float

POINTS = 8  # of the integral over beta
SHARED = ("data", "sigma", "station", "grid", "sign", "dataset", "basis", "spacing")


@dataclass(frozen=True, slots=True)
class BayesFactor:
    """Natural logarithm of evidence of a model over that of a reference.

    Attributes
    ----------
    value : positive where the data speak for the model.
    error : its standard deviation, of the draws.
    """

    value: float
    error: float


def log_bayes_factor(
    reference: InversionProblem, model: InversionProblem, settings: InversionSettings
) -> BayesFactor:
    """Compare two models by the evidence of the same data.

    Parameters
    ----------
    reference, model : which may differ in ``G`` alone (and in what moment slip has).
    settings : the prior, ``draws`` (over all points of the path), ``seed``, and a
        smoothness that is given or "auto".

    Raises
    ------
    InversionError
        Where something else differs, Green's functions have ``changes``, or data and
        prior leave slip undetermined.
    """
    _refuse_others(reference, model)
    ends, value = _posteriors(reference, model, settings)
    rng = np.random.default_rng(settings.seed)
    draws = max(2, settings.draws // POINTS)
    point, weight = np.polynomial.legendre.leggauss(POINTS)
    total = variance = 0.0
    n_data = len(ends[0].data)
    for beta, part in zip(0.5 * (point + 1.0), 0.5 * weight, strict=True):
        groups = tuple(
            _between(a, b, float(beta))
            for a, b in zip(ends[0].groups, ends[1].groups, strict=True)
        )
        try:
            chain = sample(
                replace(ends[0], groups=groups), value, draws, draws // 2, rng
            )
        except scipy.linalg.LinAlgError as error:
            raise InversionError(
                "data and prior leave some slip undetermined: there is no evidence"
            ) from error
        value = chain.value[-1]
        gains = np.array(
            [
                _gain(ends[0].groups, ends[1].groups, *drawn, n_data)
                for drawn in zip(chain.value, chain.variance, strict=True)
            ]
        )
        total += part * float(gains.mean())
        variance += part**2 * float(gains.var()) / max(effective_size(gains), 1.0)
    return BayesFactor(total, float(np.sqrt(variance)))


def _posteriors(
    reference: InversionProblem, model: InversionProblem, settings: InversionSettings
) -> tuple[list[Hierarchy], Float]:
    """Return the posteriors of slip at both ends, and slip of about the right size."""
    roughness = roughness_of(reference, settings.regulariser)
    smoothness = None if settings.smoothness == "auto" else settings.smoothness
    sums = [normal_equations(p, roughness) for p in (reference, model)]
    ends = [
        hierarchy_of(p, normal, smoothness)
        for p, normal in zip((reference, model), sums, strict=True)
    ]
    value = start_of(sums[0], *sums[0].bounds)
    beside = [nuisance_of(end) for end in ends]
    if beside[0] is not None and beside[1] is not None:
        # the ratio of the evidences is that of slip alone: errors of data are the same
        ends = [beside[0].model, beside[1].model]
        value = value[: sums[0].n_par]
    return ends, value


def _between(first: Quadratic, second: Quadratic, beta: float) -> Quadratic:
    """Return the sums of squares on the way from the one to the other."""
    return Quadratic(
        (1.0 - beta) * first.matrix + beta * second.matrix,
        (1.0 - beta) * first.right + beta * second.right,
        (1.0 - beta) * first.power + beta * second.power,
        first.count,
    )


def _gain(
    first: tuple[Quadratic, ...],
    second: tuple[Quadratic, ...],
    value: Float,
    variance: Float,
    n_data: int,
) -> float:
    """Log likelihood of the second less that of the first."""
    return sum(
        0.5 * (a.misfit(value) - b.misfit(value)) / float(v)
        for a, b, v in zip(first[:n_data], second[:n_data], variance, strict=False)
    )


def _refuse_others(reference: InversionProblem, model: InversionProblem) -> None:
    if reference.changes.size or model.changes.size:
        # a draw of the earth would replace the likelihood between the two models
        raise InversionError("there is no evidence where Green's functions change")
    for name in SHARED:
        ours, theirs = (np.asarray(getattr(p, name)) for p in (reference, model))
        same = ours.shape == theirs.shape and (
            np.array_equal(ours, theirs)
            if ours.dtype.kind != "f"
            else np.allclose(ours, theirs, rtol=1e-6)
        )
        if not same:
            raise InversionError(
                f"the models differ in {name}: they need the same faults, sources, "
                "signs and data to be compared"
            )
