"""The command: lazy verbs, one clear line for an error, exit codes."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx
import pytest

from afterslip.cli import main as command
from afterslip.cli import server as options
from afterslip.cli.verbs import CLIENT, LOCAL, SUMMARIES, Verb, verbs
from afterslip.client import Client
from afterslip.errors import one_problem

ROOT = Path(__file__).parents[2]


def run(capsys, *args):
    """Run the command in this process; return exit code, output, error output."""
    with pytest.raises(SystemExit) as ended:
        command.main(list(args))
    out, err = capsys.readouterr()
    return ended.value.code or 0, out, err


CAMPAIGN = {
    "id": "c7f3", "name": "tohoku [2011]", "state": "complete", "n_sources": 72,
    "created_at": "2026-11-21T08:00:00Z", "digest": "sha256:ab", "error": None,
    "progress": {"total": 18, "accepted": 17, "failed": 1}, "inversions": ["i1"],
    "model": {"n_unknowns": 68412, "n_elements": 16310},
}  # fmt: skip
GROUPS = [
    {"index": 3, "state": "failed", "attempts": 3, "sources": [12, 13, 14, 15],
     "error": {"class": "oom", "message": "out of memory"}}
]  # fmt: skip
INVERSION = {
    "id": "i1", "name": "coseismic", "state": "accepted", "error": None,
    "summary": {"magnitude": 9.01, "moment": 4e22, "peak_slip": 36.2,
                "variance_reduction": 0.984, "score": 2.4},
}  # fmt: skip


def answer(request):
    """Answer as a server with one campaign."""
    path = request.url.path
    if path == "/v1/campaigns" and request.method == "GET":
        return httpx.Response(200, json={"items": [CAMPAIGN], "next": None})
    if path.endswith("/groups"):
        return httpx.Response(200, json={"items": GROUPS, "next": None})
    if path == "/v1/inversions":
        return httpx.Response(200, json={"items": [INVERSION], "next": None})
    if path == "/v1/campaigns/c7f3":
        return httpx.Response(200, json=CAMPAIGN)
    if path == "/v1/campaigns/c7f3/retry":
        detail = "nothing has failed in this campaign"
        return httpx.Response(409, json={"title": "Conflict", "detail": detail})
    if path == "/v1/campaigns/c7f3/cancel":
        body = CAMPAIGN | {"state": "running", "cancelling": True}
        return httpx.Response(200, json=body)
    if path.endswith("/events"):
        lines = [
            {"kind": "group.state", "data": {"index": 4, "state": "running"}},
            {"kind": "group.progress",
             "data": {"index": 4, "phase": "curve", "solves_done": 2,
                      "solves_expected": 7, "residual": 3e-7}},
            {"kind": "group.state", "data": {"index": 4, "state": "failed",
             "error": {"class": "nan", "message": "not a number"}}},
            {"kind": "campaign.state", "data": {"state": "complete"}},
        ]  # fmt: skip
        text = "".join(
            f"id: {i}\ndata: {json.dumps(line)}\n\n" for i, line in enumerate(lines, 1)
        )
        return httpx.Response(200, text=text)
    return httpx.Response(404, json={"title": "Not Found", "detail": f"no {path}"})


@pytest.fixture
def server(monkeypatch):
    def connect(url, token):
        transport = httpx.MockTransport(answer)
        return Client(url, token, transport=transport, tries=1)

    for name in ("queries", "actions", "watch", "submit", "fetch", "invert"):
        monkeypatch.setattr(f"afterslip.cli.{name}.connect", connect)
    monkeypatch.setenv("COLUMNS", "160")


def test_help_names_every_verb_and_imports_no_solver():
    code = (
        "import sys\n"
        "from afterslip.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print('MODULES', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    listed, _, modules = done.stdout.partition("MODULES")
    for name in verbs():
        assert f" {name} " in listed
    heavy = {"numpy", "xarray", "httpx", "afterslip_solver", "afterslip_workers",
             "afterslip_service", "dask", "matplotlib", "pydantic"}  # fmt: skip
    assert not heavy & set(modules.split())


def test_every_verb_of_the_entry_points_has_a_summary():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["afterslip.commands"]
    assert set(points) <= set(SUMMARIES)
    assert set(verbs()) == set(points) | set(CLIENT) | set(LOCAL)


@pytest.mark.parametrize("name", sorted(CLIENT))
def test_help_of_each_verb_of_the_client(capsys, name):
    verb = ("webhook", "add") if name == "webhook" else (name,)
    code, out, _ = run(capsys, *verb, "--help")
    assert code == 0
    assert "--server" in out


def test_a_mistyped_verb_suggests_the_nearest(capsys):
    code, _, err = run(capsys, "submti")
    assert code == 2
    assert "submit" in err


def test_a_verb_that_cannot_be_imported_says_so(capsys, monkeypatch):
    lost = {"run": Verb("run", "afterslip_nowhere:run", "x", "y")}
    monkeypatch.setattr(command, "verbs", lambda: lost)
    code, _, err = run(capsys, "run")
    assert code == 1
    assert "run is not available here: No module named 'afterslip_nowhere'" in err


def test_a_verb_whose_libraries_are_missing_names_the_extra(capsys, monkeypatch):
    lost = {"run": Verb("run", "afterslip_service.nowhere:run", "x", "y")}
    monkeypatch.setattr(command, "verbs", lambda: lost)
    code, _, err = run(capsys, "run")
    assert code == 1
    assert "`afterslip run` needs afterslip_service" in err
    assert "pip install 'afterslip[service]'" in err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (one_problem("mesh.size", -1, "must be positive"), 2,
         "afterslip: mesh.size = -1: must be positive"),
        (FileNotFoundError(2, "No such file or directory", "a.yaml"), 2, "a.yaml: no"),
        (PermissionError(13, "Permission denied", "out"), 1, "out: permission denied"),
        (TimeoutError("campaign x has not ended in time"), 1, "has not ended in time"),
        (KeyError("x"), 1, "unexpected error, KeyError: 'x' (AFTERSLIP_DEBUG=1"),
    ],
)  # fmt: skip
def test_an_error_is_one_message_and_an_exit_code(
    capsys, monkeypatch, error, code, text
):
    def fail():
        raise error

    monkeypatch.setattr(command, "load", lambda _verb: fail())
    found, out, err = run(capsys, "list")
    assert found == code
    assert text in err
    assert "Traceback" not in err
    assert out == ""


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("AFTERSLIP_DEBUG", "1")

    def fail(_verb):
        raise KeyError("x")

    monkeypatch.setattr(command, "load", fail)
    with pytest.raises(KeyError):
        command.main(["list"])


def test_interrupting_exits_as_the_shell_expects(capsys, monkeypatch):
    def interrupt(_verb):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "load", interrupt)
    assert run(capsys, "list")[0] == 130


def test_list_is_a_table_or_json(capsys, server):
    code, out, _ = run(capsys, "list")
    assert code == 0
    for part in ("c7f3", "tohoku [2011]", "complete", "17/18, 1 failed", "08:00"):
        assert part in out
    _, out, _ = run(capsys, "list", "--json")
    assert json.loads(out)[0]["id"] == "c7f3"


def test_show_tells_failures_and_what_inversions_found(capsys, server):
    code, out, _ = run(capsys, "show", "c7f3")
    assert code == 0
    assert "68,412" in out
    assert "group 3 failed after 3 attempts: out of memory (oom)" in out
    assert "Mw 9.01, largest slip 36.2 m, variance reduction 98.4%" in out
    _, out, _ = run(capsys, "show", "c7f3", "--json")
    assert json.loads(out)["groups"] == GROUPS


def test_an_unknown_campaign_is_bad_input(capsys, server):
    code, _, err = run(capsys, "show", "nothing")
    assert code == 2
    assert err.startswith("afterslip: no ")


def test_what_the_server_refuses_for_its_state_is_a_failure(capsys, server):
    code, _, err = run(capsys, "retry", "c7f3")
    assert code == 1
    assert err == "afterslip: nothing has failed in this campaign\n"


@pytest.mark.parametrize("verb", ["cancel", "invalidate", "retry", "uncancel"])
def test_a_group_that_is_not_there_is_bad_input_and_nothing_is_done(
    capsys, monkeypatch, verb
):
    done = []

    def without(request):
        if request.method == "POST":
            done.append(request.url.path)
        return answer(request)

    monkeypatch.setattr(
        "afterslip.cli.actions.connect",
        lambda url, token: Client(url, token, transport=httpx.MockTransport(without)),
    )
    code, out, err = run(capsys, verb, "c7f3", "--group", "99")
    assert code == 2
    assert "groups/99" in err
    assert out == ""
    assert done == []


def test_a_cancel_under_way_is_reported_as_such(capsys, server):
    assert "c7f3: cancelling" in run(capsys, "cancel", "c7f3")[1]


def test_watch_follows_events_to_the_end(capsys, server, monkeypatch):
    running = CAMPAIGN | {"state": "running"}
    first = iter([running])

    def once(request):
        if request.url.path == "/v1/campaigns/c7f3":
            return httpx.Response(200, json=next(first, CAMPAIGN))
        return answer(request)

    monkeypatch.setattr(
        "afterslip.cli.watch.connect",
        lambda url, token: Client(url, token, transport=httpx.MockTransport(once)),
    )
    code, _, err = run(capsys, "watch", "c7f3")
    assert code == 0
    assert "group 4 failed: not a number" in err
    assert "inversion coseismic: Mw 9.01" in err
    assert "c7f3: complete" in err


def test_watch_as_json_is_a_line_for_each_event(capsys, server):
    _, out, _ = run(capsys, "watch", "c7f3", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["kind"] for line in lines] == [
        "group.state", "group.progress", "group.state", "campaign.state",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--smoothness", "much"], "--smoothness = much: must be auto or a number"),
        (["--sign", "dip"], "--sign = dip: is not of the form NAME=VALUE"),
        (["--sigma", "0.01"], "--sigma = 0.01: must be two numbers"),
    ],
)
def test_bad_options_of_invert_are_named(capsys, server, arguments, text):
    code, _, err = run(capsys, "invert", "c7f3", "--dataset", "gnss", *arguments)
    assert code == 2
    assert text in err


def test_the_server_comes_from_option_or_environment(capsys, monkeypatch):
    asked = []

    def connect(url, token):
        asked.append((url, token))
        return Client(url, token, transport=httpx.MockTransport(answer))

    monkeypatch.setattr("afterslip.cli.queries.connect", connect)
    run(capsys, "list")
    monkeypatch.setenv("AFTERSLIP_SERVER", "http://a:1")
    monkeypatch.setenv("AFTERSLIP_TOKEN", "t")
    run(capsys, "list")
    run(capsys, "list", "--server", "http://b:2")
    assert asked == [(options.DEFAULT, None), ("http://a:1", "t"), ("http://b:2", "t")]


def test_the_installed_command_tells_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "afterslip", "--version"],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    assert done.stdout.startswith("afterslip ")
