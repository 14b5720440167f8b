"""Sources that move no datum are named, and elements too coarse for sources."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from afterslip.error_class import ErrorClass
from afterslip.schemas.fault import Sources
from afterslip_solver.testing.box import box_with_fault
from afterslip_workers.engines.viscoelastic.sources import UnitSources
from afterslip_workers.errors import TaskError
from afterslip_workers.inverting import batches, predict
from afterslip_workers.inverting.unmoved import refuse_without_any, unmoved_warning

GREENS = xr.Dataset(
    {
        "source_fault": ("source", [0, 0, 1], {"flag_meanings": "main splay"}),
        "source_component": ("source", [0, 1, 1]),
        "source_patch": (("source", "direction"), [[0, 0], [0, 0], [2, 1]]),
    }
)


def test_small_responses_are_enough():
    G = np.array([[1.0, 1e-9, -2.0], [0.0, 0.0, 1.0]])
    refuse_without_any(G)
    assert unmoved_warning(G, GREENS) == []


@pytest.mark.parametrize("nothing", [0.0, 1e-20])
def test_a_source_without_effect_is_named_and_not_refused(nothing):
    G = np.array([[1.0, 2.0, nothing], [0.5, -1.0, nothing]])
    refuse_without_any(G)
    (said,) = unmoved_warning(G, GREENS)
    assert said.startswith("1 of 3 sources move none of the data: dip of patch (2, 1)")
    assert "on splay" in said


def test_data_that_nothing_moves_are_refused():
    says = "none of 3 sources moves any of the 2 data"
    with pytest.raises(TaskError, match=says) as caught:
        refuse_without_any(np.zeros((2, 3)))
    assert caught.value.error_class == ErrorClass.BAD_INPUT


def test_elements_too_coarse_for_the_sources_are_noted():
    geometry = box_with_fault((8, 8, 6), (8.0, 8.0, 6.0), 90.0, 4.0, 2.0, 2.0)
    model: Any = SimpleNamespace(faults=geometry.faults)

    def note(n: int) -> str:
        grid = Sources(fault="main", along_strike=n, down_dip=1, shape="patch")
        (found,) = UnitSources.of([grid], model).notes()
        return found

    # elements of about 1 m on 4 m x 2 m
    assert "too coarse" not in note(1)
    assert "give mesh.size.fault of 0.0005 km or less" in note(4)


def test_green_s_functions_do_not_depend_on_how_many_stations_are_sampled_at_once(
    monkeypatch,
):
    rng = np.random.default_rng(6)
    table = rng.standard_normal((3, 9, 3))

    def sample(x, y, times):
        growth = 1 + np.asarray(times)[:, None, None]
        return SimpleNamespace(values=table[:, None, x.astype(int)] * growth)

    class Lines(SimpleNamespace):
        def __len__(self):
            return 40

    greens = SimpleNamespace(sizes={"source": 3}, attrs={})
    store: Any = SimpleNamespace(dataset=greens, sample=sample)
    station = rng.integers(0, 9, 40)
    rows: Any = Lines(
        epoch=rng.integers(0, 2, 40).astype(float),
        station=station,
        dataset=rng.choice(["a", "b"], 40),
        x=np.arange(9.0),
        y=np.zeros(9),
        direction=rng.standard_normal((40, 3)),
    )
    expected = np.einsum("sri,ri->rs", table[:, station], rows.direction)
    expected *= (1 + rows.epoch)[:, None]
    for most in (9, 36, 10**6):
        monkeypatch.setattr(batches, "MOST_VALUES", most)
        assert predict.design_matrix(store, rows) == pytest.approx(expected)
