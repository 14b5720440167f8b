"""The inversion against closed forms and synthetic slip."""

import dataclasses
import time

import numpy as np
import pytest

from afterslip_solver.inversion import (
    InversionError,
    InversionProblem,
    InversionSettings,
    Laplacian,
    SourceGrid,
    deal_stations,
    invert,
    moment_parts,
    offset_columns,
    spatial_blocks,
)
from afterslip_solver.inversion.regularisers.laplacian import laplacian
from afterslip_solver.reference import Rectangles, surface_displacement

ALONG, DOWN = 8, 6
LENGTH, WIDTH, DIP = 20e3, 20e3, 20.0


def slip_pattern(grid):
    bump = np.exp(-(((grid[:, 2] - 3.5) / 2.0) ** 2) - ((grid[:, 3] - 1.0) / 1.8) ** 2)
    return np.where(grid[:, 1] == 1, 5.0 * bump, 0.8 * bump)


def build(n_station=44, noise=0.02, seed=1, components=(0, 1), sign=0):
    """Patches of a thrust that reaches the surface, observed by random stations."""
    rng = np.random.default_rng(seed)
    grid = np.array(
        [[0, c, i, j] for c in components for i in range(ALONG) for j in range(DOWN)]
    )
    cos, sin = np.cos(np.deg2rad(DIP)), np.sin(np.deg2rad(DIP))
    xy = rng.uniform([20e3, -120e3], [220e3, 120e3], (n_station, 2))
    columns = [
        surface_displacement(
            xy,
            Rectangles(
                j * WIDTH * cos,
                (i - (ALONG - 1) / 2) * LENGTH,
                j * WIDTH * sin,
                0.0,
                DIP,
                LENGTH,
                WIDTH,
            ),
            np.eye(3)[c],
        ).ravel()
        for _, c, i, j in grid
    ]
    G = np.column_stack(columns)
    station = np.repeat(np.arange(n_station), 3)
    sigma = np.full(3 * n_station, noise)
    n = len(grid)
    return InversionProblem(
        G=G,
        data=G @ slip_pattern(grid) + noise * rng.standard_normal(len(G)),
        sigma=sigma,
        station=station,
        kind=np.where(station < 5, "gnssa", "gnss"),
        grid=grid,
        area=np.full(n, LENGTH * WIDTH),
        rigidity=np.full(n, 40e9),
        sign=np.full(n, sign),
        spacing=np.array([[LENGTH, WIDTH]]),
        open_top=np.array([True]),
        position=xy,
    )


@pytest.fixture(scope="module")
def thrust():
    return build()


def fixed(smoothness, sparsity=0.0, **more):
    return InversionSettings(
        smoothness=smoothness, sparsity=sparsity, folds=0, draws=0, **more
    )


# roughness


def test_laplacian_of_a_lone_cell_counts_its_buried_edges():
    grid = np.array([[0, 1, 0, 0]])
    square = np.ones((1, 2))
    assert laplacian(SourceGrid(grid, square, np.array([True])))[0, 0] == 3.0
    assert laplacian(SourceGrid(grid, square, np.array([False])))[0, 0] == 4.0


def test_laplacian_is_five_point_and_keeps_components_apart():
    grid = np.array([[0, c, i, j] for c in (0, 1) for i in range(4) for j in range(4)])
    matrix = laplacian(SourceGrid(grid, np.array([[30e3, 30e3]]), np.array([True])))
    i, j = grid[:16, 2], grid[:16, 3]
    inner = (i == 1) & (j == 1)
    row = matrix[:16, :16][inner][0]
    assert row[inner] == 4.0
    assert sorted(row)[:4] == [-1.0] * 4
    assert not matrix[:16, 16:].any()
    # slip that does not change down dip is smooth at the open top edge
    column = np.where(i == 1, 1.0, 0.0)
    top = (i == 1) & (j == 0)
    assert (matrix[:16, :16] @ column)[top] == 2.0


def test_laplacian_weighs_directions_by_spacing_squared():
    grid = np.array([[0, 0, i, j] for i in range(3) for j in range(3)])
    matrix = laplacian(SourceGrid(grid, np.array([[2.0, 1.0]]), np.array([False])))
    centre = 4
    assert matrix[centre, 4 - 3] / matrix[centre, 4 - 1] == pytest.approx(0.25)
    assert matrix[centre, centre] == pytest.approx(4.0)
    squares = SourceGrid(grid, np.ones((1, 2)), np.array([True]))
    assert np.linalg.eigvalsh(Laplacian().precision(squares)).min() > 0


@pytest.mark.parametrize("spacing", [0.0, -1.0, np.nan, np.inf])
def test_spacing_must_be_a_positive_length_however_short(thrust, spacing):
    dataclasses.replace(thrust, spacing=np.array([[1e-3, WIDTH]])).check()
    with pytest.raises(InversionError, match="spacing of the source grid"):
        dataclasses.replace(thrust, spacing=np.array([[spacing, WIDTH]])).check()


# closed forms


def test_fixed_weight_is_ridge_regression_in_closed_form(thrust):
    L = Laplacian().precision(thrust.sources)
    weighted = thrust.G / thrust.sigma[:, None]
    normal = weighted.T @ weighted + 3.0 * L
    exact = np.linalg.solve(normal, weighted.T @ (thrust.data / thrust.sigma))
    out = invert(thrust, fixed(3.0))
    assert np.abs(out.slip - exact).max() < 1e-9 * np.abs(exact).max()
    assert out.covariance == pytest.approx(np.linalg.inv(normal), rel=1e-6, abs=1e-15)
    assert out.resolution == pytest.approx(
        np.linalg.solve(normal, weighted.T @ weighted), rel=1e-6, abs=1e-9
    )
    assert out.predicted + out.residual == pytest.approx(thrust.data)


def test_offset_is_estimated_and_does_not_leak_into_slip():
    clean = build(noise=0.01)
    component = np.tile([0, 1, 2], len(clean.G) // 3)
    shift = np.array([0.3, -0.2, 0.1])
    columns = offset_columns(np.zeros(len(clean.G), dtype=int), component)
    assert columns.shape == (len(clean.G), 3)
    shifted = dataclasses.replace(
        clean, data=clean.data + shift[component], nuisance=columns
    )
    out = invert(shifted, fixed(1.0))
    assert out.nuisance == pytest.approx(shift, abs=0.03)
    reference = invert(clean, fixed(1.0))
    spread = np.sqrt(np.diag(out.covariance))
    assert (np.abs(out.slip - reference.slip) < 3.5 * spread).all()
    without = invert(
        dataclasses.replace(shifted, nuisance=np.zeros((0, 0))), fixed(1.0)
    )
    assert without.fit.chi_square > 2 * out.fit.chi_square


def test_moment_of_a_fault_is_that_of_its_vector_sum():
    problem = build(components=(0, 1))
    keep = np.flatnonzero((problem.grid[:, 2] == 0) & (problem.grid[:, 3] < 2))
    small = dataclasses.replace(
        problem,
        G=problem.G[:, keep],
        data=problem.G[:, keep] @ np.array([3.0, 0.0, 4.0, 2.0]),
        grid=problem.grid[keep],
        area=np.full(4, 4e8),
        rigidity=np.array([40e9, 30e9, 40e9, 30e9]),
        sign=np.zeros(4, dtype=int),
    )
    out = invert(small, fixed(0.0))
    assert out.slip == pytest.approx([3.0, 0.0, 4.0, 2.0], abs=1e-9)
    # 3 m along strike on the first patch; up dip 4 m there and 2 m on the second
    by_hand = 4e8 * np.hypot(40e9 * 3.0, 40e9 * 4.0 + 30e9 * 2.0)
    assert out.moment == pytest.approx(by_hand)
    assert out.magnitude == pytest.approx(2 / 3 * (np.log10(by_hand) - 9.1))
    # noise back and forth adds nothing, and faults do not cancel
    slip = np.array([[1.0, -4 / 3, 0.0, 0.0]])
    assert moment_parts(small, slip).sum() == pytest.approx(0.0, abs=1.0)
    grid = small.grid.copy()
    grid[[1, 3], 0] = 1
    two = dataclasses.replace(small, grid=grid)
    assert moment_parts(two, slip).sum() == pytest.approx(2 * 40e9 * 4e8)


def test_variance_reductions_by_kind():
    problem = build()
    out = invert(problem, fixed(1.0))
    rows = problem.kind == "gnssa"
    r, d = out.residual[rows], problem.data[rows]
    assert out.fit_by_kind["gnssa"].count == 15
    assert out.fit_by_kind["gnssa"].variance_reduction == pytest.approx(
        1 - (r @ r) / (d @ d)
    )
    assert out.fit_by_kind["gnssa"].rms == pytest.approx(np.sqrt(np.mean(r**2)))
    assert set(out.fit_by_kind) == {"gnss", "gnssa"}


# sign, sparsity


def test_sign_constraint_holds_per_component():
    problem = build(noise=0.2)
    sign = np.where(problem.grid[:, 1] == 1, 1, 0)
    out = invert(dataclasses.replace(problem, sign=sign), fixed(1e-3))
    dip = problem.grid[:, 1] == 1
    assert out.outcome == "converged"
    assert (out.slip[dip] >= 0).all()
    assert (out.slip[~dip] < 0).any()
    assert (invert(problem, fixed(1e-3)).slip[dip] < 0).any()


def test_more_sparsity_leaves_fewer_sources(thrust):
    counts = [
        np.count_nonzero(invert(thrust, fixed(1e-3, mu)).slip)
        for mu in (0.0, 10.0, 1000.0, 1e9)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == thrust.G.shape[1]
    assert counts[-1] == 0


# cross-validation


def test_folds_keep_stations_together_and_share_out_the_kinds(thrust):
    fold = deal_stations(thrust.station, thrust.kind, 5, seed=3)
    for s in np.unique(thrust.station):
        assert len(set(fold[thrust.station == s])) == 1
    per_fold = [len(set(thrust.station[fold == k])) for k in range(5)]
    assert max(per_fold) - min(per_fold) <= 1
    for k in range(5):
        assert (thrust.kind[fold == k] == "gnssa").sum() == 3
    assert (fold == deal_stations(thrust.station, thrust.kind, 5, seed=3)).all()
    assert (fold != deal_stations(thrust.station, thrust.kind, 5, seed=4)).any()


def test_blocks_are_compact_and_equal(thrust):
    fold = spatial_blocks(thrust.station, thrust.position, 4)[::3]
    counts = np.bincount(fold)
    assert counts.tolist() == [11] * 4
    spread = [np.ptp(thrust.position[fold == k], axis=0).min() for k in range(4)]
    assert max(spread) < 130e3
    out = invert(thrust, InversionSettings(sparsity=0.0, folds=4, grouping="blocks"))
    assert out.cross_validation is not None
    assert (out.cross_validation.fold[::3] == fold).all()


def test_recovers_a_smooth_slip_within_its_error_bars(thrust):
    out = invert(thrust, InversionSettings(sparsity=0.0))
    truth = slip_pattern(thrust.grid)
    spread = np.sqrt(np.diag(out.covariance))
    deviation = np.abs(out.slip - truth) / spread
    assert np.mean(deviation < 2.0) > 0.85
    assert 0.7 < out.fit.chi_square < 1.3
    assert out.fit.weighted_variance_reduction > 0.95
    reference = 40e9 * LENGTH * WIDTH * np.hypot(truth[:48], truth[48:]).sum()
    assert out.magnitude == pytest.approx(2 / 3 * (np.log10(reference) - 9.1), abs=0.03)


def test_chosen_weights_are_inside_the_search_and_repeat(thrust):
    both = InversionSettings(sparsity="auto")
    started = time.process_time()
    out = invert(thrust, both)
    seconds = time.process_time() - started
    table = out.cross_validation
    assert seconds < 20
    assert table is not None
    assert table.smoothness.min() < out.smoothness < table.smoothness.max()
    assert out.sparsity < table.sparsity.max()
    assert table.score[table.best] == table.score.min()
    # predicts unseen stations far better than no slip does, and than either extreme
    assert table.score.min() < 0.1 * np.mean((thrust.data / thrust.sigma) ** 2)
    ends = np.isin(table.smoothness, [table.smoothness.min(), table.smoothness.max()])
    assert table.score[ends].min() > 2 * table.score.min()
    again = invert(thrust, both)
    assert (again.slip == out.slip).all()


def test_one_standard_error_rule_is_smoother_and_within_the_error(thrust):
    plain = invert(thrust, InversionSettings(choice="cross_validation"))
    out = invert(thrust, InversionSettings(sparsity=0.0, choice="one_standard_error"))
    table = out.cross_validation
    assert table is not None
    limit = table.score[table.best] + table.standard_error[table.best]
    assert out.smoothness > plain.smoothness
    assert table.score[table.chosen] <= limit


def test_score_is_the_prediction_error_of_left_out_stations(thrust):
    out = invert(thrust, InversionSettings(smoothness=2.0, sparsity=0.0, folds=4))
    table = out.cross_validation
    scores = []
    for k in range(4):
        assert table is not None
        rest = table.fold != k
        part = dataclasses.replace(
            thrust,
            G=thrust.G[rest],
            data=thrust.data[rest],
            sigma=thrust.sigma[rest],
            station=thrust.station[rest],
            kind=thrust.kind[rest],
        )
        slip = invert(part, fixed(2.0)).slip
        misfit = (thrust.data - thrust.G @ slip)[~rest] / thrust.sigma[~rest]
        scores.append(np.mean(misfit**2))
    assert table is not None
    assert table.fold_scores[0] == pytest.approx(scores)
    assert table.score[0] == pytest.approx(np.mean(scores))
    assert table.standard_error[0] == pytest.approx(np.std(scores, ddof=1) / 2)


# sensitivity


def test_says_where_the_data_see_nothing(thrust):
    blind = dataclasses.replace(thrust, G=thrust.G.copy())
    blind.G[:, 7] = 0.0
    out = invert(blind, fixed(1.0))
    assert np.isinf(out.detectable_slip[7])
    assert out.unseen[7]
    assert not out.unseen.all()
    k = 20
    signal = out.detectable_slip[k] * blind.G[:, k] / blind.sigma
    assert signal @ signal == pytest.approx(1.0)


# bad input


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sigma": 0.0}, "sigma is zero or negative in row 3"),
        ({"sigma": np.nan}, "sigma is not finite in row 3"),
        ({"data": np.inf}, "data is not finite in row 3"),
        ({"G": np.nan}, "G is not finite in row 3"),
    ],
)
def test_refuses_bad_rows_by_number(thrust, change, words):
    name, value = next(iter(change.items()))
    array = getattr(thrust, name).copy()
    array[3] = value
    with pytest.raises(InversionError, match=words):
        invert(dataclasses.replace(thrust, **{name: array}))


def test_refuses_no_data_and_too_many_folds(thrust):
    empty = dataclasses.replace(
        thrust,
        G=thrust.G[:0],
        data=thrust.data[:0],
        sigma=thrust.sigma[:0],
        station=thrust.station[:0],
        kind=thrust.kind[:0],
    )
    with pytest.raises(InversionError, match="no data"):
        invert(empty)
    with pytest.raises(InversionError, match="only 44 stations"):
        invert(thrust, InversionSettings(folds=45))
    with pytest.raises(InversionError, match="at least 2 folds"):
        invert(thrust, InversionSettings(folds=1))
    with pytest.raises(InversionError, match="smoothness is -1"):
        invert(thrust, InversionSettings(smoothness=-1.0))
    with pytest.raises(InversionError, match="position"):
        invert(
            dataclasses.replace(thrust, position=np.zeros((0, 2))),
            InversionSettings(grouping="blocks"),
        )
    with pytest.raises(InversionError, match="share fault"):
        invert(dataclasses.replace(thrust, grid=np.zeros_like(thrust.grid)))


def test_solver_that_stops_early_says_so_and_how_to_go_on(thrust):
    problem = dataclasses.replace(thrust, sign=np.ones_like(thrust.sign))
    out = invert(problem, fixed(1.0, max_iterations=1))
    assert out.outcome == "not_converged"
    assert "max_iterations" in out.advice
