"""How much memory an inversion needs, from its sizes alone."""

from __future__ import annotations

from dataclasses import dataclass

from afterslip_solver.inversion.normal import VALUES_AT_ONCE
from afterslip_solver.inversion.settings import InversionSettings

VALUE = 8  # bytes
# matrices of unknowns by unknowns that stand at once, beside those of data and folds
SQUARES = 12
# arrays of draws by unknowns: slip free, held and within bounds, and their quantities
OF_DRAWS = 7
# copies of a correlated block: as read, reweighted, of the rows chosen, and its factor
OF_BLOCK = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the memory of an inversion hangs on.

    Attributes
    ----------
    rows : data.
    sources : unit sources.
    parts : times that all sources are unknown: 1, or with increments more.
    beside : unknowns beside slip.
    datasets : whose squares are summed apart.
    correlated : data in each block with correlated errors.
    changes : of the earth, one for each campaign that is compared.
    problems : of the cross-validation, folds times repeats.
    """

    rows: int
    sources: int
    parts: int = 1
    beside: int = 0
    datasets: int = 1
    correlated: tuple[int, ...] = ()
    changes: int = 0
    problems: int = 5

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return self.sources * self.parts + self.beside


def memory_needed(sizes: Sizes) -> dict[str, int]:
    """Return the bytes that stand at once, by what they are for.

    Returns
    -------
    {"data", "other earths", "correlated errors", "unknowns"} in bytes; an upper limit
    for most shapes, and within a factor of three.
    """
    n, design = sizes.unknowns, sizes.rows * sizes.sources
    data = design + sizes.rows * sizes.beside
    if sizes.parts > 1:
        # in the viscoelastic earth and the elastic one
        data += 2 * design * sizes.parts
    data += 3 * min(sizes.rows * n, VALUES_AT_ONCE)
    earths = 0
    if sizes.changes:
        # of each campaign, then all side by side, and their squares twice
        earths = design * (2 * sizes.changes + 1)
        wide = (1 + sizes.changes) * n
        earths += 2 * sizes.datasets * wide**2
        earths += 3 * min(sizes.rows * wide, VALUES_AT_ONCE)
    largest = max(sizes.correlated, default=0)
    errors = OF_BLOCK * sum(m * m for m in sizes.correlated) + 3 * largest * n
    squares = n * n * (SQUARES + sizes.datasets + 2 * sizes.problems)
    squares += OF_DRAWS * InversionSettings().draws * n
    parts = {
        "data": data,
        "other earths": earths,
        "correlated errors": errors,
        "unknowns": squares,
    }
    return {name: VALUE * values for name, values in parts.items()}
