"""``afterslip invert`` sends new data, and never mistakes them for the campaign's."""

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml

from afterslip.cli import main as command
from afterslip.client import Client

ROOT = Path(__file__).parents[2]
CAMPAIGN = {
    "id": "c7f3", "name": "tohoku", "state": "complete",
    "spec": {"model": {}, "datasets": [{"name": "gnss"}, {"name": "seafloor"}]},
}  # fmt: skip
INVERSION = {
    "id": "i1", "name": "inversion", "state": "accepted", "error": None,
    "summary": {"magnitude": 9.01, "moment": 4e22, "peak_slip": 36.2,
                "variance_reduction": 0.984, "score": 2.4},
}  # fmt: skip


@pytest.fixture
def sent(monkeypatch):
    """Return what is sent to a server with one campaign: paths and bodies."""
    found = []

    def answer(request):
        if request.method == "GET":
            return httpx.Response(200, json=CAMPAIGN)
        found.append((request.url.path, request.content))
        made = {"/v1/files": {"ref": "sha256:0"}, "/v1/inversions": INVERSION}
        return httpx.Response(201, json=made.get(request.url.path, {}))

    def connect(url, token):
        return Client(url, token, transport=httpx.MockTransport(answer), tries=1)

    monkeypatch.setattr("afterslip.cli.invert.connect", connect)
    monkeypatch.setenv("COLUMNS", "200")
    return found


def run(*datasets):
    with pytest.raises(SystemExit) as ended:
        command.main(["invert", "c7f3", *(f"--dataset={item}" for item in datasets)])
    return ended.value.code or 0


def test_new_data_by_the_name_of_the_campaign_s_own_are_not_sent(
    sent, tmp_path, capsys
):
    (tmp_path / "new.csv").write_text("station,x_km,y_km,east\n")
    assert run(f"late={tmp_path}/new.csv", f"gnss={tmp_path}/new.csv") == 2
    assert not sent
    said = " ".join(capsys.readouterr().err.split())
    assert "gnss is the campaign's own data set (give the new data another name" in said
    assert "--dataset NAME=FILE" in said


def test_new_data_are_sent_before_the_inversion_beside_the_campaign_s(sent, tmp_path):
    (tmp_path / "new.csv").write_text("station,x_km,y_km,east\n")
    assert run(f"late={tmp_path}/new.csv", "gnss") == 0
    paths = [path for path, _ in sent]
    assert paths == ["/v1/files", "/v1/datasets", "/v1/inversions"]
    assert json.loads(sent[1][1])["name"] == "late"
    assert json.loads(sent[2][1])["datasets"] == ["late", "gnss"]


def test_the_command_of_the_docs_gives_its_new_data_a_new_name():
    text = (ROOT / "docs/start.md").read_text()
    (name,) = re.findall(r"afterslip invert tohoku-2011 --dataset (\w+)=", text)
    spec = yaml.safe_load((ROOT / "examples/tohoku2011/campaign.yaml").read_text())
    assert spec["name"] == "tohoku-2011"
    # gnss: what a reader's own spec is most likely to call its data
    assert name not in {"gnss", *(item["name"] for item in spec["datasets"])}
