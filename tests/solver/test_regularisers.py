"""Priors of slip: matrices, parameters and the page that says how to add one."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.special

from afterslip_solver.inversion import (
    REGULARISERS,
    InversionProblem,
    InversionSettings,
    Laplacian,
    SourceGrid,
    VonKarman,
    invert,
    make_regulariser,
)

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-regulariser.md"
ALL = [Laplacian(), VonKarman(), VonKarman(hurst=0.3, along_km=40, down_km=10)]


def two_faults(n=4, m=3):
    place = [
        [f, c, i, j] for f in (0, 1) for c in (0, 1) for i in range(n) for j in range(m)
    ]
    spacing = np.array([[10e3, 8e3], [5e3, 5e3]])
    return SourceGrid(np.array(place), spacing, np.array([True, False]))


@pytest.mark.parametrize("prior", ALL, ids=repr)
def test_precision_is_symmetric_definite_and_leaves_components_apart(prior):
    sources = two_faults()
    matrix = prior.precision(sources)
    assert matrix.shape == (48, 48)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh(matrix).min() > 0
    apart = (sources.place[:, None, :2] != sources.place[None, :, :2]).any(axis=2)
    assert not matrix[apart].any()


def test_von_karman_has_the_covariance_of_its_equation():
    sources = two_faults()
    prior = VonKarman(hurst=0.5, along_km=25.0, down_km=12.0)
    covariance = np.linalg.inv(prior.precision(sources))
    # with H = 1/2 the covariance is exp(-r)
    one = sources.place[:12, 2:] * [10.0 / 25.0, 8.0 / 12.0]
    apart = np.linalg.norm(one[:, None] - one[None], axis=2)
    np.testing.assert_allclose(covariance[:12, :12], np.exp(-apart), atol=2e-6)
    rough = np.linalg.inv(VonKarman(0.25, 25.0, 12.0).precision(sources))
    r = 10.0 / 25.0
    exact = r**0.25 * scipy.special.kv(0.25, r)
    exact /= 2.0**-0.75 * scipy.special.gamma(0.25)
    assert rough[0, 3] == pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("laplace", {}, "no prior 'laplace': use laplacian, von_karman"),
        ("von_karman", {"length": 3.0}, "no 'length': it knows hurst, along_km"),
        ("laplacian", {"length": 3.0}, "it knows no parameters"),
        ("von_karman", {"hurst": 1.5}, "hurst must be above 0 and at most 1"),
        ("von_karman", {"along_km": -1.0}, "must not be negative"),
    ],
)
def test_a_prior_that_cannot_be_made_is_refused_by_name(name, parameters, words):
    with pytest.raises(ValueError, match=words):
        make_regulariser(name, parameters)


def test_snippets_of_the_page_add_a_prior_that_inverts():
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    before = dict(REGULARISERS)
    names = {"__name__": "added"}
    try:
        for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(snippet, str(PAGE), "exec"), names)
        added = REGULARISERS["gradient"](damping=0.5)
    finally:
        REGULARISERS.clear()
        REGULARISERS.update(before)
    sources = two_faults()
    rng = np.random.default_rng(3)
    problem = InversionProblem(
        G=np.eye(48),
        data=rng.standard_normal(48),
        sigma=np.ones(48),
        station=np.arange(48),
        kind=np.full(48, "gnss"),
        grid=sources.place,
        area=np.ones(48),
        rigidity=np.ones(48),
        sign=np.zeros(48, dtype=int),
        spacing=sources.spacing,
        open_top=sources.open_top,
    )
    settings = InversionSettings(smoothness=2.0, folds=0, draws=0, regulariser=added)
    # by hand: a corner has two neighbours, and (I + 2 L) a = d
    L = added.precision(sources)
    assert L[0, 0] == 2.5
    assert L[0, 1] == L[0, 3] == -1.0
    exact = np.linalg.solve(np.eye(48) + 2.0 * L, problem.data)
    np.testing.assert_allclose(invert(problem, settings).slip, exact, atol=1e-12)
