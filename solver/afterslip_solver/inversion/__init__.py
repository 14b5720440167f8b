"""Slip from observations: regularised, sign-constrained least squares.

Minimises ``(d - G a)' W (d - G a) + lambda a' L a + mu |a|_1`` with W = Sigma^-1.
lambda and the scale of Sigma come from the posterior, which has the signs in it and
whose draws are the uncertainty; or lambda and mu from cross-validation over stations.
"""

from afterslip_solver.inversion.bayes_factor import BayesFactor, log_bayes_factor
from afterslip_solver.inversion.choice import CrossValidation
from afterslip_solver.inversion.covariance import (
    Block,
    Variogram,
    exponential,
    fit_variogram,
    is_positive_definite,
    whiten,
)
from afterslip_solver.inversion.earths import earth_error, with_earths
from afterslip_solver.inversion.folds import deal_stations, spatial_blocks
from afterslip_solver.inversion.in_time import (
    InTime,
    in_blocks,
    moment_history,
    total,
)
from afterslip_solver.inversion.model_error import ModelError, with_model_error
from afterslip_solver.inversion.posterior import Posterior, interval, limits
from afterslip_solver.inversion.problem import (
    InversionError,
    InversionProblem,
    KnownSum,
    offset_columns,
)
from afterslip_solver.inversion.regularisers import (
    REGULARISERS,
    Laplacian,
    Regulariser,
    SourceGrid,
    VonKarman,
    make_regulariser,
)
from afterslip_solver.inversion.restoration import with_data_of
from afterslip_solver.inversion.robust import cut, reweighted, robust_weights
from afterslip_solver.inversion.rupture import moment_rate, share_times
from afterslip_solver.inversion.settings import InversionSettings
from afterslip_solver.inversion.solution import (
    Fit,
    InversionSolution,
    magnitude_of,
    moment_parts,
    moment_weights,
    rigidity_in,
)
from afterslip_solver.inversion.solve import invert

__all__ = [
    "REGULARISERS",
    "BayesFactor",
    "Block",
    "CrossValidation",
    "Fit",
    "InTime",
    "InversionError",
    "InversionProblem",
    "InversionSettings",
    "InversionSolution",
    "KnownSum",
    "Laplacian",
    "ModelError",
    "Posterior",
    "Regulariser",
    "SourceGrid",
    "Variogram",
    "VonKarman",
    "cut",
    "deal_stations",
    "earth_error",
    "exponential",
    "fit_variogram",
    "in_blocks",
    "interval",
    "invert",
    "is_positive_definite",
    "limits",
    "log_bayes_factor",
    "magnitude_of",
    "make_regulariser",
    "moment_history",
    "moment_parts",
    "moment_rate",
    "moment_weights",
    "offset_columns",
    "reweighted",
    "rigidity_in",
    "robust_weights",
    "share_times",
    "spatial_blocks",
    "total",
    "whiten",
    "with_data_of",
    "with_earths",
    "with_model_error",
]
