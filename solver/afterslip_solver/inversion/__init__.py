"""Slip from observations: regularised, sign-constrained least squares.

Minimises ``(d - G a)' W (d - G a) + lambda a' L a + mu |a|_1`` with W = Sigma^-1,
lambda and mu by cross-validation over stations.
"""

from afterslip_solver.inversion.choice import CrossValidation
from afterslip_solver.inversion.covariance import (
    Block,
    Variogram,
    exponential,
    fit_variogram,
    is_positive_definite,
    whiten,
)
from afterslip_solver.inversion.folds import deal_stations, spatial_blocks
from afterslip_solver.inversion.in_time import (
    InTime,
    in_blocks,
    moment_history,
    total,
)
from afterslip_solver.inversion.problem import (
    InversionError,
    InversionProblem,
    InversionSettings,
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
from afterslip_solver.inversion.robust import reweighted, robust_weights
from afterslip_solver.inversion.solution import Fit, InversionSolution
from afterslip_solver.inversion.solve import invert

__all__ = [
    "REGULARISERS",
    "Block",
    "CrossValidation",
    "Fit",
    "InTime",
    "InversionError",
    "InversionProblem",
    "InversionSettings",
    "InversionSolution",
    "Laplacian",
    "Regulariser",
    "SourceGrid",
    "Variogram",
    "VonKarman",
    "deal_stations",
    "exponential",
    "fit_variogram",
    "in_blocks",
    "invert",
    "is_positive_definite",
    "make_regulariser",
    "moment_history",
    "offset_columns",
    "reweighted",
    "robust_weights",
    "spatial_blocks",
    "total",
    "whiten",
]
