"""Sums by few thread blocks: a CPU gains nothing from a thousand."""

from __future__ import annotations

from afterslip_solver.backend.cuda import creep, iteration, nccl, vectors

_open_rank = nccl.open_rank


def open_rank(*arguments, **options):
    """Open a rank whose process does the same."""
    _take_few()
    return _open_rank(*arguments, **options)


def _take_few():
    creep._DOTS = vectors._DOTS = 4
    for module in (iteration, nccl):
        vars(module).update(_BLOCKS=4, _FOLD=4)


def pytest_configure():
    _take_few()
    nccl.open_rank = open_rank
