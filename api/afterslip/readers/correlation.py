"""Errors that data share: columns of correlations, and full matrices."""

from __future__ import annotations

import io

import numpy as np

from afterslip.errors import one_problem
from afterslip.readers.delimited import Float, Table

COLUMNS = ("corr_en", "corr_eu", "corr_nu")
# a correlation this near to one leaves no error to the difference of two components
LARGEST = 0.9999


def correlations(table: Table, displacement: Float) -> Float:
    """Return the correlations of the errors of east, north and up.

    Parameters
    ----------
    displacement : (n, 3) m, NaN where there are no data; those have no correlation.

    Returns
    -------
    (n, 3) float64 east-north, east-up, north-up; zero where the file says nothing.
        What is no correlation is noted in the table.
    """
    if not any(table.has(name) for name in COLUMNS):
        return np.zeros((len(table), 3))
    found = np.nan_to_num(np.column_stack([table.numbers(name) for name in COLUMNS]))
    there = np.isfinite(displacement)
    for column, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        found[~(there[:, i] & there[:, j]), column] = 0.0
        table.refuse(
            np.abs(found[:, column]) > LARGEST,
            COLUMNS[column],
            "must be between -1 and 1",
            "a correlation, not a covariance",
        )
    found = np.clip(found, -LARGEST, LARGEST)
    en, eu, nu = found.T
    # det of the matrix of correlations; its diagonal is one
    singular = 1 + 2 * en * eu * nu - en**2 - eu**2 - nu**2 <= 1e-9
    table.refuse(
        singular,
        "",
        "has correlations that make no positive definite covariance",
        "check corr_en,corr_eu,corr_nu",
    )
    found[singular] = 0.0
    return found


def read_matrix(content: bytes, n: int, label: str) -> Float:
    """Read a covariance matrix as text, one line of numbers per datum.

    Parameters
    ----------
    n : number of data.

    Returns
    -------
    (n, n) float64, m2, symmetric and positive definite.

    Raises
    ------
    SpecError
        Not numbers, another size, not symmetric or not positive definite.
    """
    text = content.decode("utf-8", "replace").replace(",", " ")
    try:
        matrix = np.loadtxt(io.StringIO(text), ndmin=2)
    except ValueError as error:
        hint = f"write {n} lines of {n} numbers in m²"
        text = f"is no table of numbers: {error}"
        raise one_problem(label, None, text, hint) from None
    if matrix.shape != (n, n):
        size = " x ".join(map(str, matrix.shape))
        hint = f"write {n} lines of {n} numbers, data in the order of the file"
        raise one_problem(label, None, f"is {size}, and there are {n} data", hint)
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0].tolist()
        text = f"has a number that is not finite in line {i + 1}, column {j + 1}"
        hint = "leave out the datum and its line and column"
        raise one_problem(label, str(matrix[i, j]), text, hint)
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0.0):
        i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        pair = f"{matrix[i, j]:g} and {matrix[j, i]:g}"
        text = f"is not symmetric: lines {i + 1} and {j + 1} say two things"
        raise one_problem(label, pair, text, "write the same number on both sides")
    matrix = 0.5 * (matrix + matrix.T)
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[0])
        raise one_problem(
            label,
            f"smallest eigenvalue {least:.3g} m²",
            "covariance is not positive definite",
            "add the variance that each datum has of its own to the diagonal",
        ) from None
    return np.asarray(matrix)
