"""Linear rheology: dashpots and springs in series, and the rates that they imply.

Every linear viscoelastic body with the elastic spring mu is a chain: the spring in
series with branches, each a dashpot that may have a spring beside it. One branch
without a spring is a Maxwell body, one with a spring a standard linear solid, both in
series a Burgers body, and more branches an extended Burgers body. With the deviatoric
strain d, branch strains e_i and the stress 2 mu (d - sum e_j) of the whole chain,

    e_i' = (mu / eta_i) (d - sum_j e_j) - (mu_i / eta_i) e_i.

A new rheology says which branches it has; all integrators follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_Float = NDArray[np.float64]
# from shear moduli (n,), Pa, the viscosities (Pa s) and moduli (Pa) of branches, each
# (n, n_branch)
BranchesOf = Callable[[_Float], tuple[_Float, _Float]]


@dataclass(frozen=True, slots=True)
class Branch:
    """A dashpot and the spring beside it, in series with the rest of the chain.

    Attributes
    ----------
    viscosity : (n_elem,) Pa s; inf where an element has no such branch.
    modulus : (n_elem,) Pa of the spring beside the dashpot; 0 where there is none,
        None where no element has one.
    """

    viscosity: _Float
    modulus: _Float | None = None

    @property
    def springs(self) -> _Float:
        """(n_elem,) Pa, the modulus; without springs a view that takes no memory."""
        if self.modulus is None:
            return np.broadcast_to(0.0, self.viscosity.shape)
        return self.modulus

    @property
    def recovery(self) -> _Float:
        """(n_elem,) 1/s, modulus over viscosity; may be read-only."""
        return self.springs if self.modulus is None else self.modulus / self.viscosity

    def at(self, elements: NDArray[np.int64]) -> Branch:
        """Return the branch of some elements, in their order."""
        modulus = None if self.modulus is None else self.modulus[elements]
        return Branch(self.viscosity[elements], modulus)


class RelaxingBody(Protocol):
    """What a plan in time must know of a body: how fast its stress relaxes."""

    @property
    def anywhere(self) -> bool:
        """Whether anything creeps at all."""

    @property
    def fastest(self) -> float:
        """Largest rate at which stress relaxes at a point, 1/s."""

    def softening(self, shift: float) -> float:
        """Largest rate (1/s) at which a shift softens: mu/mu^v is 1 + shift * rate."""


@dataclass(frozen=True, slots=True)
class RelaxationRates:
    """Rates of all branches; see `RelaxingBody`.

    Attributes
    ----------
    creep : per branch (n,) 1/s, mu over the branch's viscosity; 0 where absent. A
        branch may have fewer rows than the first: the elements that come first.
    recovery : per branch (n,) 1/s, the branch's modulus over its viscosity.
    """

    creep: Sequence[_Float]
    recovery: Sequence[_Float]

    @classmethod
    def of(cls, mu: _Float, branches: Sequence[Branch]) -> RelaxationRates:
        """Rates of elements with shear modulus mu (n_elem,), Pa."""
        creep = [mu / branch.viscosity for branch in branches]
        return cls(creep, [branch.recovery for branch in branches])

    @property
    def anywhere(self) -> bool:
        """See `RelaxingBody`."""
        return any(bool((rate > 0.0).any()) for rate in self.creep)

    def largest(self) -> _Float:
        """Largest rate at which stress relaxes, (n,) 1/s; 0 where nothing creeps."""
        rate = self.creep[0] + self.recovery[0]
        for k in range(1, len(self.creep)):
            n = len(self.creep[k])
            if n:
                creep = [c[:n] for c in self.creep[: k + 1]]
                rate[:n] = _largest(creep, [r[:n] for r in self.recovery[: k + 1]])
        return np.asarray(rate)

    @property
    def fastest(self) -> float:
        """See `RelaxingBody`."""
        return float(self.largest().max())

    def softening(self, shift: float) -> float:
        """See `RelaxingBody`; a branch softens no further than its spring lets it."""
        rate = np.zeros_like(self.creep[0])
        for creep, recovery in zip(self.creep, self.recovery, strict=True):
            rate[: len(creep)] += creep / (1.0 + shift * recovery)
        return float(rate.max())


def _largest(creep: Sequence[_Float], recovery: Sequence[_Float]) -> _Float:
    """Largest eigenvalue (n,) of diag(recovery) + creep 1^T, all branches (n,)."""
    if len(creep) == 2:
        (a, b), (p, q) = creep, recovery
        half = 0.5 * (a + p + b + q)
        product = a * q + p * b + p * q
        return np.asarray(half + np.sqrt(np.maximum(half**2 - product, 0.0)))
    # similar to the symmetric diag(recovery) + sqrt(creep) sqrt(creep)^T
    root = np.sqrt(np.stack(creep, axis=1))
    matrix = root[:, :, None] * root[:, None, :]
    matrix += np.eye(len(creep)) * np.stack(recovery, axis=1)[:, None, :]
    return np.asarray(np.linalg.eigvalsh(matrix)[:, -1])


def burgers(
    viscosity: _Float,
    kelvin_viscosity: _Float | None = None,
    kelvin_modulus: _Float | None = None,
) -> tuple[Branch, ...]:
    """Branches of Maxwell and Burgers bodies, which creep by a lone dashpot first.

    Parameters
    ----------
    viscosity : (n_elem,) Pa s of the Maxwell dashpot; inf where elastic.
    kelvin_viscosity, kelvin_modulus : (n_elem,) Pa s and Pa of a Kelvin element; both
        inf where there is none, None where there is none at all.
    """
    own = Branch(viscosity)
    if kelvin_viscosity is None or kelvin_modulus is None:
        return (own,)
    has = np.isfinite(kelvin_modulus) & np.isfinite(kelvin_viscosity)
    slow = np.where(has, kelvin_viscosity, np.inf)
    return own, Branch(slow, np.where(has, kelvin_modulus, 0.0))


def merged(
    own: Sequence[Branch], viscosity: _Float, modulus: _Float
) -> tuple[Branch, ...]:
    """Put branches in the place of those of the elements that have none of their own.

    Parameters
    ----------
    viscosity, modulus : (n_elem, n_branch) Pa s and Pa; inf and 0 where an element has
        no such branch.
    """
    found = []
    none = Branch(np.full(len(viscosity), np.inf))
    for mine, eta, spring in zip_longest(own, viscosity.T, modulus.T):
        old = mine or none
        if eta is None:
            found.append(old)
            continue
        there = np.isfinite(eta)
        springs = np.where(there, spring, old.springs)
        sprung = springs if springs.any() else None
        found.append(Branch(np.where(there, eta, old.viscosity), sprung))
    return tuple(found)
