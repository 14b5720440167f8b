"""``afterslip change`` keeps to the version it saw; ``afterslip usage`` sums up."""

import json

import httpx
import pytest

from afterslip.cli import main as command
from afterslip.client import Client

CAMPAIGN = {"id": "c7f3", "name": "old", "state": "running", "priority": 0}
USED = [
    {"who": "c7f3", "name": "tohoku", "attempts": 3, "worker_seconds": 3725.4,
     "lost_seconds": 20.0, "solves": 16, "iterations": 1234},
    {"who": "c001", "name": "chile", "attempts": 1, "worker_seconds": 5.0,
     "lost_seconds": 0.0, "solves": 1, "iterations": 9},
]  # fmt: skip


class Server:
    def __init__(self):
        self.campaign, self.tag, self.asked = dict(CAMPAIGN), '"1"', []

    def __call__(self, request):
        if request.url.path == "/v1/usage":
            return self.usage(dict(request.url.params))
        if request.method == "PATCH":
            if request.headers["If-Match"] != self.tag:
                return httpx.Response(412, json={"title": "x", "detail": "changed"})
            self.campaign |= json.loads(request.content)
        return httpx.Response(200, json=self.campaign, headers={"ETag": self.tag})

    def usage(self, asked):
        self.asked.append(asked)
        item = USED[1] if "cursor" in asked else USED[0]
        more = None if "cursor" in asked else "c7f3"
        return httpx.Response(200, json={"items": [item], "next": more})


@pytest.fixture
def run(capsys, monkeypatch):
    server = Server()

    def connect(url, token):
        return Client(url, token, transport=httpx.MockTransport(server), tries=1)

    monkeypatch.setenv("COLUMNS", "160")
    for name in ("actions", "usage"):
        monkeypatch.setattr(f"afterslip.cli.{name}.connect", connect)

    def run(*args):
        with pytest.raises(SystemExit) as ended:
            command.main(list(args))
        return ended.value.code or 0, *capsys.readouterr()

    vars(run)["server"] = server
    return run


def test_name_and_priority_are_changed_in_one_request(run):
    code, out, _ = run("change", "c7f3", "--name", "new", "--priority", "-5")
    assert code == 0
    assert out == "new c7f3: priority -5, running\n"
    assert run.server.campaign == CAMPAIGN | {"name": "new", "priority": -5}


@pytest.mark.parametrize(
    "wrong", [[], ["--priority", "1001"], ["--priority", "soon"]], ids=str
)
def test_a_change_of_nothing_or_of_too_much_is_bad_input(run, wrong):
    assert run("change", "c7f3", *wrong)[0] == 2
    assert run.server.campaign == CAMPAIGN


def test_usage_is_summed_over_all_pages(run):
    code, out, _ = run("usage")
    assert code == 0
    head, first, second = out.splitlines()
    assert head.split()[:4] == ["campaign", "id", "worker", "time"]
    assert first.split() == ["tohoku", "c7f3", "1:02:05", "0:00:20", "3", "16", "1,234"]
    assert second.split()[:3] == ["chile", "c001", "0:00:05"]


def test_usage_as_json_is_what_the_server_says(run):
    _, out, _ = run("usage", "--by", "user", "--json")
    assert json.loads(out) == USED
    assert run.server.asked[0] == {"by": "user"}
