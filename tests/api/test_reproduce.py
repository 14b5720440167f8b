"""An inversion that is done again from its own record."""

import json

import numpy as np
import pytest
from example_result import example_result
from typer.testing import CliRunner

from afterslip import SpecError
from afterslip.cli import reproduce as command
from afterslip.cli.main import app
from afterslip.reproduction import compare, record_of

REQUEST = {"name": "co", "datasets": ["gnss"], "seed": 3}


class Asked:
    """A server that knows one campaign and answers with a given result."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def campaign(self, which):
        assert which == "c7"
        return self

    def ask(self, request):
        self.requests.append(dict(request))
        return self

    def wait(self):
        return self

    id = "i9"

    @property
    def result(self):
        return self.answer


@pytest.fixture
def stored(tmp_path):
    result = example_result()
    result.attrs.update(campaign="c7", request=json.dumps(REQUEST))
    result.to_netcdf(tmp_path / "result.nc", engine="h5netcdf")
    return result, tmp_path / "result.nc"


def answer_to(monkeypatch, stored, again, *options):
    asked = Asked(again)
    monkeypatch.setattr(command, "connect", lambda *_: asked)
    answer = CliRunner().invoke(app, ["reproduce", str(stored), *options])
    assert asked.requests == [REQUEST]
    return answer


def test_the_same_result_passes_and_a_changed_slip_does_not(monkeypatch, stored):
    result, path = stored
    same = answer_to(monkeypatch, path, result)
    assert same.exit_code == 0, same.output
    assert "reproduced" in same.output
    moved = result.copy(deep=True)
    moved["slip"][0] += 0.01 * float(np.abs(moved["slip"]).max())
    other = answer_to(monkeypatch, path, moved)
    assert other.exit_code == 1
    assert "not reproduced" in other.output
    assert answer_to(monkeypatch, path, moved, "--tolerance", "0.02").exit_code == 0


def test_a_number_or_a_shape_that_changed_is_named(monkeypatch, stored):
    result, path = stored
    moved = result.copy(deep=True)
    moved.attrs["moment"] = 1.1 * result.attrs["moment"]
    answer = answer_to(monkeypatch, path, moved, "--json")
    said = json.loads(answer.output)
    assert answer.exit_code == 1
    assert said["change"]["moment"] == pytest.approx(0.1)
    assert said["change"]["slip"] == 0.0
    fewer = result.isel(obs=slice(1, None))
    changes = {item.name: item.change for item in compare(result, fewer)}
    assert changes["observed"] == np.inf


def test_a_result_without_a_record_is_refused(stored):
    result, _ = stored
    with pytest.raises(SpecError, match="no record of its request"):
        record_of(result.drop_attrs())
