"""Constraints of a request as bounds of coefficients and known sums of slip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from afterslip.schemas.constraints import Moment, limits_of
from afterslip.schemas.inversion import Inversion
from afterslip_common.terms import SLIP_COMPONENTS
from afterslip_solver.inversion import InversionError, KnownSum
from afterslip_solver.model import Float, Int

_SIGN = {"positive": 1, "negative": -1, "free": 0}


def constraint_terms(
    request: Inversion, faults: Sequence[str], grid: Int, size: Float
) -> dict[str, Any]:
    """Return the fields of an InversionProblem that say what slip may be.

    Parameters
    ----------
    faults : names, in the order of the first column of ``grid``.
    grid : (n_par, 4) fault, component, along, down.
    size : (n_par,) N, rigidity times area.

    Raises
    ------
    InversionError
        Where no slip within the bounds has the known moment.
    """
    signs = np.array([_SIGN[request.sign.get(c, "free")] for c in SLIP_COMPONENTS])
    terms: dict[str, Any] = {"sign": signs[grid[:, 1]]}
    if request.constraints:
        basis, lower, upper = _coefficients(request, faults, grid)
        terms |= {"lower": lower, "upper": upper, "sign": _signs(basis, lower, upper)}
        if any(item.rake for item in request.constraints):
            terms["basis"] = basis
    if request.moment is not None:
        terms["known"] = (_known(request.moment, grid, size),)
        _check_reach(request.moment, terms, len(grid))
    return terms


def _coefficients(
    request: Inversion, faults: Sequence[str], grid: Int
) -> tuple[Float, Float, Float]:
    """Slip of a unit of each coefficient (n_par, n), and their bounds (n,), m."""
    columns: list[Float] = []
    limits: list[tuple[float, float]] = []
    by_fault = {item.fault: item for item in request.constraints}
    for fault in np.unique(grid[:, 0]):
        item = by_fault.get(faults[fault], by_fault.get(None))
        mine = np.flatnonzero(grid[:, 0] == fault)
        rakes = (item and item.rake) or []
        for rake in rakes:
            angle = np.deg2rad(rake)
            way = np.array([np.cos(angle), np.sin(angle)])
            for source in mine[grid[mine, 1] == 0]:
                same = (grid[:, [0, 2, 3]] == grid[source, [0, 2, 3]]).all(axis=1)
                columns.append(np.where(same, way[grid[:, 1]], 0.0))
                limits.append((0.0, (item and item.most) or np.inf))
        for source in mine if not rakes else ():
            columns.append(np.where(np.arange(len(grid)) == source, 1.0, 0.0))
            component = SLIP_COMPONENTS[grid[source, 1]]
            limits.append(limits_of(item, component, request.sign.get(component)))
    # in the order of the sources that come first in each coefficient
    order = np.argsort(
        [int(np.argmax(column != 0.0)) for column in columns], kind="stable"
    )
    lower, upper = np.array(limits)[order].T
    return np.column_stack(columns)[:, order], lower, upper


def _signs(basis: Float, lower: Float, upper: Float) -> Int:
    """(n_par,) int64, sign that the bounds leave to each source; 0: both."""
    with np.errstate(invalid="ignore"):
        ends = np.stack([basis * lower, basis * upper])
    ends = np.where(basis == 0.0, 0.0, ends)
    positive = (ends.min(axis=0) >= -1e-12).all(axis=1)
    negative = (ends.max(axis=0) <= 1e-12).all(axis=1)
    return np.where(positive, 1, np.where(negative, -1, 0))


def _known(moment: Moment, grid: Int, size: Float) -> KnownSum:
    """Return the moment along a rake as a sum of slip."""
    angle = np.deg2rad(moment.rake)
    way = np.array([np.cos(angle), np.sin(angle)])[grid[:, 1]]
    value = 10.0 ** (1.5 * moment.magnitude + 9.1)
    # to first order: an error of Mw is one of the moment's logarithm
    error = value * 1.5 * np.log(10.0) * moment.error
    return KnownSum(size * way, value, error)


def _check_reach(moment: Moment, terms: dict[str, Any], n: int) -> None:
    """Refuse a moment that is further than three errors from what bounds allow."""
    (known,) = terms["known"]
    basis = terms.get("basis", np.eye(n))
    signs = terms["sign"]
    lower = terms.get("lower", np.where(signs > 0, 0.0, -np.inf))
    upper = terms.get("upper", np.where(signs < 0, 0.0, np.inf))
    row = known.row @ basis
    with np.errstate(invalid="ignore"):
        ends = np.where(row == 0.0, 0.0, np.stack([row * lower, row * upper]))
    most = float(ends.max(axis=0).sum())
    if most < known.value - 3.0 * known.sigma:
        reached = 2.0 / 3.0 * (np.log10(most) - 9.1) if most > 0 else -np.inf
        raise InversionError(
            f"moment: Mw {moment.magnitude:g} along rake {moment.rake:g} is beyond "
            f"Mw {reached:.2f}, the most that sign, bounds and rake allow: widen them, "
            "or turn the rake"
        )
