"""A rheology that is added as the page says relaxes."""

import re
from pathlib import Path

import numpy as np

from afterslip_common.terms import YEAR
from afterslip_solver.greens import evaluate_curve, prepare
from afterslip_solver.model import SolverSettings

PAGE = Path(__file__).parents[2] / "docs/how-to/add-a-rheology.md"


def test_snippets_of_the_page_add_a_body_on_which_integrators_agree(small):
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 60
    names = {"model": small.box_model((4, 4, 4)), "__name__": "added"}
    for snippet in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(snippet, str(PAGE), "exec"), names)
    model = names["relaxing"]
    assert type(model.materials).__name__ == "StandardLinearSolid"
    slip = small.patch_slip(model.faults["main"])
    times = YEAR * np.array([0.0, 0.5, 1.0])
    curves = []
    for changes in (
        {"scheme": "polynomial"},
        {"integrator": "stepping", "step": YEAR / 10},
    ):
        settings = SolverSettings(
            times=tuple(times), until=YEAR, tolerance=1e-9, **changes
        )
        result = prepare(model, settings, "cpu").solve(slip, model.surface.nodes)
        assert result.outcome == "converged"
        curves.append(evaluate_curve(result, times))
    change = np.abs(curves[0] - curves[0][:, :1]).max()
    assert change > 1e-3 * np.abs(curves[0]).max()
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-2 * change)
