"""Relaxation by Lanczos against exact, dense and stepped solutions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import bsr_array
from scipy.sparse.linalg import splu

from afterslip_common.terms import YEAR
from afterslip_solver.greens import SettingsError, evaluate_curve, prepare
from afterslip_solver.model import (
    TET_EDGES,
    FaultMesh,
    Materials,
    Model,
    SolverSettings,
    SplitNodes,
    Surface,
)


def curve_settings(until, **changes):
    times = tuple(until * np.array([0.0, 0.1, 0.3, 0.6, 1.0]))
    return SolverSettings(times=times, until=until, **changes)


def solved(model, slip, settings, **hooks):
    return prepare(model, settings, "cpu").solve(slip, model.surface.nodes, **hooks)


def test_creep_operator_is_self_adjoint_with_bounded_spectrum(small):
    model = small.box_model((4, 4, 4))
    settings = curve_settings(YEAR, scheme="polynomial", tolerance=1e-11)
    prepared = prepare(model, settings, "cpu")
    spectral, creep = prepared.relaxation.integrator, prepared.relaxation.creep
    elastic = prepared.elastic.system
    dot, rng = small.backend.dot, np.random.default_rng(0)
    a, b = rng.standard_normal((2, *creep.shape))

    def apply(q):
        f = creep.divergence(2.0 * creep.mu, q) * elastic.operator.free
        from afterslip_solver.krylov import pcg

        u = pcg(elastic.operator, elastic.cycle, f, tolerance=1e-12)
        return creep.field(creep.rate) * (q - creep.strain(u.values))

    assert spectral is not None
    assert spectral.plan.shift == 0.0
    left, right = dot(apply(a), creep.weighted(b)), dot(a, creep.weighted(apply(b)))
    size = np.sqrt(dot(a, creep.weighted(a)) * dot(b, creep.weighted(b)))
    assert (np.abs(left - right) < 1e-11 * size * creep.rate.max()).all()
    energy = dot(a, creep.weighted(apply(a)))
    assert (energy > 0).all()
    assert (energy < creep.rate.max() * dot(a, creep.weighted(a))).all()


def sheared_column(small, h=1000.0):
    """Column between fixed ends that can only shear, with slip in Maxwell rock."""
    mesh = small.box_mesh((2, 2, 8), (2 * h, 2 * h, 8 * h))
    x = mesh.nodes
    fixed = np.ones(x.shape, dtype=bool)
    fixed[:, 0] = (x[:, 2] > -1e-6) | (x[:, 2] < -8 * h + 1e-6)
    centre = x[mesh.cells].mean(axis=1)[:, 2]
    visco = centre < -3 * h
    mu = np.where(visco, 2e10, 5e10)
    materials = Materials(1.2 * mu, mu, 3000 + 0 * mu, np.where(visco, 4e18, np.inf))
    level = -5 * h
    nodes = np.flatnonzero(np.abs(x[:, 2] - level) < 1e-6)
    position = np.full(len(x), -1)
    position[nodes] = np.arange(len(nodes))
    index = position[mesh.elements]
    touching = np.flatnonzero((index >= 0).any(axis=1))
    side = np.where(centre[touching] > level, 0.5, -0.5)
    sign = np.where(index[touching] >= 0, side[:, None], 0.0)
    split = SplitNodes(touching, index[touching], sign)
    n, empty = len(nodes), np.zeros((0, 6), dtype=np.int64)
    axes = [np.tile(v, (n, 1)) for v in np.eye(3)]
    line = np.zeros(n)
    fault = FaultMesh("level", empty, nodes, line, line, 1.0, 1.0, False, *axes)
    trace = np.flatnonzero(np.abs(x[:, 2] + 3 * h) < 1e-6)
    model = Model(
        mesh,
        materials,
        fixed,
        Surface(trace, empty),
        {"level": fault},
        {"level": split},
    )
    compliance = 3 * h / 5e10 + 5 * h / 2e10
    rate = 5 * h / 4e18 / compliance
    amplitude = 3 * h / 5e10 / compliance
    return model, n, rate, amplitude


@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_simple_shear_relaxes_exponentially(small, scheme):
    model, n, rate, amplitude = sheared_column(small)
    slip = np.zeros((n, 3, 2))
    slip[:, 0] = [1.0, -2.5]
    settings = curve_settings(3.0 / rate, scheme=scheme)
    result = solved(model, slip, settings)
    times = np.linspace(0.0, 3.0 / rate, 13)
    found = evaluate_curve(result, times)
    exact = amplitude * np.exp(-rate * times)
    assert result.outcome == "converged"
    for lane, size in enumerate((1.0, -2.5)):
        expected = np.broadcast_to(size * exact[:, None], found.shape[1:3])
        np.testing.assert_allclose(found[lane, :, :, 0], expected, atol=1e-8)
        assert np.abs(found[lane, :, :, 1:]).max() < 1e-12
    # the first creep rate is an eigenvector: one mode says it all
    assert (result.mode_count <= 3).all()


def dense_curve(model, slip, times):
    """Trace of the exact solution with dense matrices in full strain tensors."""
    mesh, m = model.mesh, model.materials
    n = len(mesh.nodes)
    which = np.flatnonzero(np.isfinite(m.viscosity))
    shapes = vertex_shapes(mesh)
    k = np.zeros((n, 3, n, 3))
    volume = np.abs(np.linalg.det(np.diff(mesh.nodes[mesh.cells], axis=1))) / 6
    mass = (np.ones((4, 4)) + np.eye(4)) / 20.0
    for e, nodes in enumerate(mesh.elements):
        h = shapes[e]
        g = volume[e] * np.einsum("ab,anp,bmq->npmq", mass, h, h)
        block = m.lam[e] * g + m.mu[e] * g.transpose(0, 3, 2, 1)
        trace = m.mu[e] * np.einsum("npmp->nm", g)
        block += np.einsum("nm,pq->npmq", trace, np.eye(3))
        k[np.ix_(nodes, range(3), nodes, range(3))] += block
    offsets = np.zeros((len(mesh.elements), 10, 3))
    for name, split in model.splits.items():
        offsets[split.elements] += split.offsets(slip[name][:, :, None])[..., 0]
    f = np.zeros((n, 3))
    for e in np.flatnonzero(np.abs(offsets).max(axis=(1, 2)) > 0).tolist():
        nodes = mesh.elements[e]
        gradient = np.einsum("anp,nq->apq", shapes[e], offsets[e])
        stress = m.mu[e] * (gradient + gradient.transpose(0, 2, 1))
        stress += m.lam[e] * np.einsum("app->a", gradient)[:, None, None] * np.eye(3)
        f[nodes] -= volume[e] * np.einsum("ab,anp,bpq->nq", mass, shapes[e], stress)
    free = ~model.fixed.ravel()
    inverse = np.zeros((3 * n, 3 * n))
    inverse[np.ix_(free, free)] = np.linalg.inv(
        k.reshape(3 * n, 3 * n)[np.ix_(free, free)]
    )
    strain = np.zeros((len(which), 4, 3, 3, n, 3))
    force = np.zeros((n, 3, len(which), 4, 3, 3))
    for row, e in enumerate(which.tolist()):
        h, nodes = shapes[e], mesh.elements[e]
        b = np.zeros((4, 3, 3, 10, 3))
        for i in range(3):
            for j in range(3):
                b[:, i, j, :, i] += 0.5 * h[:, :, j]
                b[:, i, j, :, j] += 0.5 * h[:, :, i]
        spur = np.einsum("aiinq->anq", b) / 3.0
        deviator = b - np.einsum("ij,anq->aijnq", np.eye(3), spur)
        strain[row][:, :, :, nodes] = deviator
        weighted = volume[e] * np.einsum("ab,bijnq->nqaij", mass, deviator)
        force[nodes, :, row] += 2.0 * m.mu[e] * weighted
    size = strain[..., 0, 0].size
    strain, force = np.reshape(strain, (size, -1)), np.reshape(force, (-1, size))
    rate = np.repeat(m.mu[which] / m.viscosity[which], 36)
    u0 = inverse @ f.ravel()
    c0 = strain @ u0
    for row, e in enumerate(which.tolist()):
        gradient = np.einsum("anp,nq->apq", shapes[e], offsets[e])
        sym = 0.5 * (gradient + gradient.transpose(0, 2, 1))
        sym -= np.einsum("app->a", sym)[:, None, None] * np.eye(3) / 3
        c0[36 * row : 36 * row + 36] += sym.ravel()
    response = inverse @ force
    a = rate[:, None] * (np.eye(size) - strain @ response)
    big = np.zeros((size + 1, size + 1))
    big[:size, :size], big[:size, size] = -a, rate * c0
    out = []
    for t in times:
        e = expm(t * big)[:size, size]
        out.append((u0 + response @ e).reshape(n, 3)[model.surface.nodes])
    return np.array(out)


def vertex_shapes(mesh):
    """(n_elem, 4 vertices, 10 shapes, 3) gradients by differences of the formula."""
    p = mesh.nodes[mesh.cells]
    edges = np.concatenate([np.ones((*p.shape[:2], 1)), p], axis=2)
    g = np.linalg.inv(edges)[:, 1:].transpose(0, 2, 1)
    out = np.zeros((len(p), 4, 10, 3))
    for v in range(4):
        one = np.eye(4)[v]
        for a in range(4):
            out[:, v, a] = (4 * one[a] - 1) * g[:, a]
        for k, (a, b) in enumerate(TET_EDGES):
            out[:, v, 4 + k] = 4 * (one[a] * g[:, b] + one[b] * g[:, a])
    return out


@pytest.mark.parametrize("scheme", ["polynomial", "shift_invert"])
def test_curve_equals_dense_matrix_exponential(small, scheme):
    model = small.box_model((4, 4, 4))
    touching = model.splits["main"].elements
    viscosity = np.full(len(model.mesh.elements), np.inf)
    # some rock that the fault cuts creeps, at two speeds
    viscosity[touching[3:9]] = 3e18
    viscosity[touching[-4:]] = 2e19
    model = replace(model, materials=replace(model.materials, viscosity=viscosity))
    slip = {"main": small.patch_slip(model.faults["main"], 1)}
    until = 8.0 * YEAR
    settings = curve_settings(
        until, scheme=scheme, time_tolerance=1e-8, tolerance=1e-11
    )
    result = solved(model, slip, settings)
    assert result.outcome == "converged"
    expected = dense_curve(model, {"main": slip["main"][:, :, 0]}, settings.times)
    found = evaluate_curve(result, np.array(settings.times))[0]
    change = np.abs(expected - expected[0]).max()
    assert np.abs(found[0] - expected[0]).max() < 1e-9
    assert np.abs(found - expected).max() < 2e-8 * change


def test_both_schemes_and_fine_steps_agree(small):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    until = 3.0 * YEAR
    spectral = curve_settings(until, time_tolerance=1e-8, tolerance=1e-10)
    times = np.array(spectral.times)
    curves = [
        evaluate_curve(solved(model, slip, replace(spectral, scheme=s)), times)
        for s in ("polynomial", "shift_invert")
    ]
    change = np.abs(curves[0] - curves[0][:, :1]).max()
    assert np.abs(curves[0] - curves[1]).max() < 1e-7 * change
    errors = []
    for count in (10, 20):
        stepped = replace(spectral, integrator="stepping", step=until / count)
        found = evaluate_curve(solved(model, slip, stepped), times)
        errors.append(np.abs(found - curves[0]).max() / change)
    assert errors[1] < 2e-3
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.2


def test_lanes_equal_separate_runs_and_idle_lanes_are_left_out(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    slip[:, :, 2] = 0.0
    settings = curve_settings(YEAR, time_tolerance=1e-6)
    together = solved(model, slip, settings)
    assert together.mode_count[2] == 1
    assert np.abs(together.response[2]).max() == 0.0
    assert together.residual[2] == 0.0
    times = np.array(settings.times)
    curves = evaluate_curve(together, times)
    for lane in (0, 3):
        alone = solved(model, slip[:, :, [lane]], settings)
        assert alone.response.shape[0] == 1
        assert alone.mode_count[0] == together.mode_count[lane]
        size = np.abs(curves[lane]).max()
        np.testing.assert_allclose(
            evaluate_curve(alone, times)[0], curves[lane], atol=1e-7 * size
        )


def test_elastic_surroundings_need_one_solve(small):
    model = small.box_model(viscosity=(np.inf, np.inf))
    slip = small.patch_slip(model.faults["main"])
    result = solved(model, slip, curve_settings(10 * YEAR))
    assert (result.solves, result.response.shape[1]) == (1, 1)
    assert (result.mode_count == 1).all()
    later = evaluate_curve(result, np.array([0.0, YEAR]))
    np.testing.assert_array_equal(later[:, 0], later[:, 1])


def test_elastic_response_satisfies_a_direct_solve(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"], 1)
    prepared = prepare(model, SolverSettings(tolerance=1e-10), "cpu")
    result = prepared.solve({"main": slip}, np.arange(len(model.mesh.nodes)))
    host = prepared.elastic.system.operator.host
    f = prepared.elastic.load({"main": slip})
    lu = splu(bsr_array((host.data, host.indices, host.indptr)).tocsc())
    u = lu.solve(f[:, :, 0].ravel()).reshape(-1, 3)
    expected = u[prepared.space.rank]
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(
        result.response[0, 0], expected, atol=1e-8 * np.abs(expected).max()
    )


def test_running_out_of_modes_is_an_outcome(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"], 2)
    settings = curve_settings(50 * YEAR, scheme="polynomial", max_modes=3)
    result = solved(model, slip, settings)
    assert result.outcome == "not_converged"
    assert "more than 3 modes: loosen solver.time_tolerance" in result.advice
    assert (result.time_error > 1e-6).all()
    assert result.response.shape[1] == 4


def test_progress_is_reported_and_stopping_is_an_outcome(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    said = []
    result = solved(
        model,
        slip,
        curve_settings(YEAR),
        progress=said.append,
        should_stop=lambda: len(said) > 4,
    )
    assert result.outcome == "stopped"
    assert {"phase", "solve", "solves_expected", "iteration"} <= set(said[0])
    assert len(said[0]["lane_residuals"]) == 4
    assert said[0]["phase"] == "elastic"
    assert said[-1]["phase"] == "relaxation"
    # nobody can know before some modes are there
    assert said[0]["solves_expected"] == 0


def test_the_expected_number_of_solves_does_not_jump(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    said = []
    result = solved(model, slip, curve_settings(YEAR), progress=said.append)
    expected = [s["solves_expected"] for s in said if s["solves_expected"]]
    assert expected
    assert all(s["solve"] <= s["solves_expected"] for s in said if s["solves_expected"])
    assert max(expected) < 2 * result.solves
    assert expected[-1] <= result.solves + 2


def test_the_history_has_the_residual_of_each_iteration(small):
    model = small.box_model((4, 4, 4))
    slip = small.patch_slip(model.faults["main"])
    result = solved(model, slip, curve_settings(YEAR))
    for entry in result.history:
        iterations, residuals = zip(*entry["curve"], strict=True)
        assert list(iterations) == sorted(iterations)
        # a solve that began at all begins where its guess stood
        assert iterations[0] == 0
        assert residuals[0] == pytest.approx(max(entry["initial"]))
        assert iterations[-1] == entry["iterations"]
        assert residuals[-1] == pytest.approx(max(entry["residuals"]), rel=1e-6)
        assert len(iterations) <= 13


def test_slip_of_the_wrong_shape_is_refused(small):
    model = small.box_model((4, 4, 4))
    prepared = prepare(model, SolverSettings(), "cpu")
    slip = small.patch_slip(model.faults["main"])
    with pytest.raises(SettingsError, match="no fault 'other'"):
        prepared.solve({"other": slip}, model.surface.nodes)
    with pytest.raises(SettingsError, match="shape"):
        prepared.solve({"main": slip[1:]}, model.surface.nodes)
    with pytest.raises(SettingsError, match="lanes"):
        prepared.solve({"main": np.repeat(slip, 2, axis=2)}, model.surface.nodes)
    slip[0, 0, 0] = np.inf
    with pytest.raises(SettingsError, match="finite"):
        prepared.solve([slip], model.surface.nodes)


@pytest.mark.parametrize(
    "bad",
    [
        {"until": -1.0},
        {"times": (0.0, np.nan)},
        {"tolerance": 0.0},
        {"max_modes": 1},
        {"integrator": "stepping", "until": YEAR, "step": 0.0},
        {"integrator": "stepping", "until": YEAR, "step": 2 * YEAR},
    ],
)
def test_settings_without_sense_are_refused(small, bad):
    with pytest.raises(SettingsError):
        prepare(small.box_model((4, 4, 4)), SolverSettings(**bad), "cpu")
