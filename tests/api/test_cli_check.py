"""``afterslip check`` with and without a server, and its figure."""

import json
from pathlib import Path

import httpx
import pytest
import yaml

from afterslip.cli import check
from afterslip.cli import main as command
from afterslip.client import Client

SPECS = Path(__file__).parent / "specs"
PLANNED = {
    "name": "tohoku", "sources": 144, "groups": 36, "elements": 22719,
    "unknowns": 93147, "trial": None, "memory_free": 8e9,
    "memory": {"backend": "cpu", "bytes": 5e8, "least_bytes": 4e8},
    "time": {"group": 12.0, "low": 9.0, "high": 15.0, "model": 20.0, "total": 240.0,
             "worker": 450.0, "slots": 2, "campaigns": 3},
    "cost": {"amount": 0.25, "currency": "EUR", "price": 2.0},
    "mesh": {"fault": 4.0, "far": 360.0, "growth": 0.35, "ends": 0.4},
    "reuse": {"model": "c7f3", "sources": None},
    "warnings": [{"path": "model.faults[0]", "message": "is 3 km from a side",
                  "hint": "leave more"}],
}  # fmt: skip


class Server:
    def __init__(self):
        self.sent, self.refuse, self.trial = [], False, None

    def __call__(self, request):
        if self.refuse:
            raise httpx.ConnectError("refused")
        self.sent.append(request)
        if request.url.path == "/v1/files":
            return httpx.Response(201, json={"ref": f"sha256:{'0' * 64}"})
        shape = {"stations": [{"name": "A", "x": 0, "y": 0}]}
        found = PLANNED | {"geometry": shape, "trial": self.trial}
        return httpx.Response(200, json=found)


@pytest.fixture
def server(monkeypatch):
    server = Server()

    def connect(url, token):
        return Client(url, token, transport=httpx.MockTransport(server), tries=1)

    monkeypatch.setattr("afterslip.cli.check.connect", connect)
    return server


@pytest.fixture
def run(capsys, server):
    def run(*args):
        with pytest.raises(SystemExit) as ended:
            command.main(["check", *map(str, args)])
        return ended.value.code or 0, *capsys.readouterr()

    return run


def test_a_plan_is_printed_in_a_few_lines(run, server):
    code, out, _ = run(SPECS / "tohoku.yaml", "--mesh")
    assert code == 0
    for part in (
        "edges of 4 km on faults, 360 km far away, growth 0.35, 0.4 times those where",
        "144 in 36 groups", "about 22,719, 93,147 unknowns",
        "0.40 to 0.50 GB a worker (cpu), and 8.0 GB are there",
        "about 4 min on 2 slots; a group about 12 s (9 to 15 s), by 3 campaigns",
        "the model of campaign c7f3",
        "model.faults[0] is 3 km from a side (leave more)",
    ):  # fmt: skip
        assert part in out
    assert server.sent[-1].url.path == "/v1/plan"
    assert server.sent[-1].url.query == b"mesh=true"


def test_without_a_server_files_and_geometry_are_checked_here(run, server):
    server.refuse = True
    code, out, _ = run(SPECS / "tohoku.yaml")
    assert code == 0
    assert "no problem found" in out
    assert "memory, time and reuse are not known: no server answers" in out
    code, _, err = run(SPECS / "tohoku.yaml", "--server", "http://elsewhere:1")
    assert code == 1
    assert "no server answers" in err


def test_a_wrong_spec_is_refused_before_anything_is_sent(run, server, tmp_path):
    spec = yaml.safe_load((SPECS / "tohoku.yaml").read_text())
    spec["model"]["layers"][0]["vs"] = 9.0
    (tmp_path / "bad.json").write_text(json.dumps(spec))
    code, _, err = run(tmp_path / "bad.json")
    assert code == 2
    assert "model.layers[0].vs = 9.0" in err
    assert server.sent == []


@pytest.mark.parametrize(
    ("coarser", "which"), [(1.0, "the mesh"), (2.5, "a mesh 2.5 times coarser")]
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=str)
def test_a_mesh_that_cannot_be_made_is_a_problem(run, server, coarser, which, form):
    failed = "faults a and b come closer than their margins"
    server.trial = {"coarser": coarser, "failed": failed}
    code, out, err = run(SPECS / "tohoku.yaml", "--mesh", *form)
    assert code == 2
    assert err == f"afterslip: model: {which} could not be made: {failed}\n"
    assert "no problem found" not in out
    if form:
        assert json.loads(out)["trial"] == server.trial
    else:
        assert "144 in 36 groups" in out


@pytest.mark.parametrize("name", ["plan.xyz", "plan"])
def test_a_figure_of_no_known_kind_is_refused_first(
    run, server, tmp_path, monkeypatch, name
):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    spec = (SPECS / "tohoku.yaml").absolute()
    # messages shorten long values, as a path of this folder may be
    monkeypatch.chdir(tmp_path)
    code, _, err = run(spec, "--figure", name)
    assert code == 2
    assert f"--figure = {name}: is no kind of figure" in err
    assert ".png, .pdf or .svg" in err
    assert server.sent == []
    assert not list(tmp_path.glob("plan*"))


def test_the_figure_shows_domain_sources_and_section(run, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    code, out, _ = run(SPECS / "tohoku.yaml", "--figure", tmp_path / "plan.png")
    assert code == 0
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "drew" in out


def test_one_is_no_plural_and_one_measurement_has_no_spread():
    time = {"total": 42.0, "slots": 1, "group": 0.21, "low": 0.21, "high": 0.21,
            "worker": 42.0, "campaigns": 1}  # fmt: skip
    found = {"name": "n", "sources": 4, "groups": 1, "time": time,
             "geometry": {"stations": []}}  # fmt: skip
    text = "\n".join(check.lines(found))
    assert "4 in 1 group\n" in text
    assert "about 42 s on 1 slot; a group about 0.21 s, by 1 campaign solved" in text
