"""Errors that the numerics raise and a worker tells apart.

::

    InputError       what was asked for cannot be computed as it stands
    MeshError        a mesh or geometry cannot be used
    RankLostError    one of several processes that solve together has ended

Each message says what to change. Any class that derives from one of them means the
same to a worker, see `afterslip_workers.errors`.
"""

from __future__ import annotations


class InputError(Exception):
    """What was asked for cannot be computed; the message says how to repair it."""


class MeshError(ValueError):
    """A mesh or geometry that cannot be used; the message names the remedy."""


class RankLostError(RuntimeError):
    """A process of the ranks ended; the message says how."""
