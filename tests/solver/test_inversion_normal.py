"""Sums of squares taken some rows at a time."""

import dataclasses

import numpy as np
import pytest
from test_inversion import build

from afterslip_solver.inversion import (
    Block,
    InversionSettings,
    Laplacian,
    deal_stations,
    invert,
    normal,
)
from afterslip_solver.inversion.choice import _rest_and_test
from afterslip_solver.inversion.normal import normal_equations, quadratics, together


@pytest.fixture
def mixed():
    """Two data sets, offsets, and correlated components of every third station."""
    posed = build(sign=1)
    rng = np.random.default_rng(3)
    blocks = []
    for station in np.unique(posed.station)[::3]:
        rows = np.flatnonzero(posed.station == station)
        scale = posed.sigma[rows]
        shared = 0.4 + 0.6 * np.eye(len(rows))
        blocks.append(Block(rows, shared * np.outer(scale, scale)))
    return dataclasses.replace(
        posed,
        covariance=tuple(blocks),
        dataset=(posed.station % 2).astype(np.int64),
        nuisance=rng.standard_normal((len(posed.data), 2)),
    )


def dense(posed, rows):
    """The same sums from the whole covariance matrix at once."""
    covariance = np.diag(posed.sigma**2)
    for block in posed.covariance:
        covariance[np.ix_(block.rows, block.rows)] = block.matrix
    design = np.hstack((posed.G, posed.nuisance))[rows]
    W = np.linalg.inv(covariance[np.ix_(rows, rows)])
    d = posed.data[rows]
    return design.T @ W @ design, design.T @ W @ d, d @ W @ d


def test_sums_in_parts_are_those_of_the_whole_covariance(mixed, monkeypatch):
    monkeypatch.setattr(normal, "VALUES_AT_ONCE", 7 * mixed.n_unknown)
    some = mixed.station % 5 != 0
    for rows in (np.ones(len(mixed.data), dtype=bool), some):
        found = quadratics(mixed, rows)
        for k, group in enumerate(found):
            mine = rows & (mixed.dataset == k)
            matrix, right, power = dense(mixed, mine)
            assert group.matrix == pytest.approx(matrix, rel=1e-9, abs=1e-6)
            assert group.right == pytest.approx(right, rel=1e-9, abs=1e-6)
            assert group.power == pytest.approx(power, rel=1e-10)
            assert group.count == mine.sum()


def test_folds_that_cut_no_block_are_summed_from_each_other(mixed):
    L = Laplacian().precision(mixed.sources)
    by_station = deal_stations(mixed.station, mixed.kind, 4)
    by_row = np.arange(len(mixed.data)) % 4
    for fold in (by_station, by_row):
        for k, (rest, test) in enumerate(_rest_and_test(mixed, L, fold)):
            direct = normal_equations(mixed, L, fold != k)
            size = np.abs(direct.matrix).max()
            assert rest.matrix == pytest.approx(direct.matrix, abs=1e-12 * size)
            assert rest.right == pytest.approx(direct.right, rel=1e-9, abs=1e-6)
            own = together(quadratics(mixed, fold == k))
            assert test.misfit(np.ones(mixed.n_unknown)) == pytest.approx(
                own.misfit(np.ones(mixed.n_unknown))
            )


def test_an_inversion_does_not_depend_on_how_many_rows_are_taken_at_once(
    mixed, monkeypatch
):
    settings = InversionSettings(draws=50)
    whole = invert(mixed, settings)
    monkeypatch.setattr(normal, "VALUES_AT_ONCE", 5 * mixed.n_unknown)
    parts = invert(mixed, settings)
    assert parts.slip == pytest.approx(whole.slip, abs=1e-6)
    assert parts.resolution == pytest.approx(whole.resolution, abs=1e-8)
    assert parts.detectable_slip == pytest.approx(whole.detectable_slip, rel=1e-10)
