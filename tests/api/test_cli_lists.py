"""Lists in pipes, what a watch ends with, and options in plain words."""

import importlib.util
import io
import json
import time

import httpx
import pytest
from rich.console import Console

from afterslip.cli import explain as explaining
from afterslip.cli import main as command
from afterslip.cli.rows import when
from afterslip.cli.verbs import verbs
from afterslip.client import Client
from afterslip.client.progress import Display

LONG = "a normal fault in central Italy with a very long name, and\ttabs"
CAMPAIGN = {
    "id": "0193f0c2d7a84b8f9a51", "name": LONG, "state": "complete",
    "created_at": "2026-11-21T09:30:00+01:00", "error": None, "n_sources": 4,
    "progress": {"total": 1, "accepted": 1}, "inversions": ["i1", "i2"],
    "inversions_failed": 1,
}  # fmt: skip
USED = {
    "who": CAMPAIGN["id"], "name": LONG, "attempts": 3, "worker_seconds": 3725.4,
    "lost_seconds": 0.0, "solves": 1600, "iterations": 12345,
}  # fmt: skip


class Server:
    def __init__(self):
        self.campaign = dict(CAMPAIGN)
        self.inversions = ["accepted", "failed"]
        self.deleted = []

    def __call__(self, request):
        path = request.url.path
        if request.method == "DELETE":
            self.deleted.append(path)
            return httpx.Response(204)
        if path == "/v1/campaigns":
            return httpx.Response(200, json={"items": [self.campaign], "next": None})
        if path == "/v1/usage":
            return httpx.Response(200, json={"items": [USED], "next": None})
        if path.endswith("/groups"):
            return httpx.Response(200, json={"items": [], "next": None})
        if path == "/v1/inversions":
            error = {"class": "bad_input", "message": "no data"}
            items = [
                {"id": f"i{k}", "name": f"slip{k}", "state": state,
                 "error": error if state == "failed" else None,
                 "summary": {"magnitude": 7.0, "peak_slip": 1.0,
                             "variance_reduction": 0.9}}
                for k, state in enumerate(self.inversions)
            ]  # fmt: skip
            return httpx.Response(200, json={"items": items, "next": None})
        if path.endswith("/events"):
            line = {"kind": "campaign.state", "data": {"state": self.campaign["state"]}}
            return httpx.Response(200, text=f"id: 1\ndata: {json.dumps(line)}\n\n")
        return httpx.Response(200, json=self.campaign)


@pytest.fixture
def run(capsys, monkeypatch):
    server = Server()

    def connect(url, token):
        return Client(url, token, transport=httpx.MockTransport(server), tries=1)

    for name in ("queries", "actions", "usage", "watch"):
        monkeypatch.setattr(f"afterslip.cli.{name}.connect", connect)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args):
        with pytest.raises(SystemExit) as ended:
            command.main(list(args))
        return ended.value.code or 0, *capsys.readouterr()

    vars(run)["server"] = server
    return run


@pytest.mark.parametrize("verb", ["list", "usage"])
def test_a_list_in_a_pipe_has_one_whole_line_for_each_row(run, verb):
    lines = run(verb)[1].splitlines()
    assert len(lines) == 2
    assert LONG.replace("\t", " ") in lines[1]
    assert CAMPAIGN["id"] in lines[1]


@pytest.mark.parametrize("verb", ["list", "usage"])
def test_tsv_has_as_many_fields_in_each_line(run, verb):
    head, row = (line.split("\t") for line in run(verb, "--tsv")[1].splitlines())
    assert len(head) == len(row) > 5
    assert LONG.replace("\t", " ") in row


def test_two_formats_at_once_are_refused(run):
    code, _, err = run("list", "--tsv", "--json")
    assert code == 2
    assert "--tsv: excludes --json" in err


def test_the_list_tells_of_failed_inversions(run):
    assert "2, 1 failed" in run("list")[1]


def test_times_are_in_utc_and_say_so():
    assert when("2026-11-21T09:30:00+01:00") == "2026-11-21 08:30 UTC"
    assert when("2026-11-21T08:30:00Z") == "2026-11-21 08:30 UTC"
    assert when(None) == ""


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize(
    ("state", "inversions", "code"),
    [
        ("complete", ["accepted"], 0),
        ("complete", ["accepted", "failed"], 1),
        ("failed", [], 1),
        ("cancelled", [], 3),
    ],
)
def test_watch_exits_by_the_outcome(run, state, inversions, code, options):
    run.server.campaign["state"] = state
    run.server.inversions = inversions
    found, _, err = run("watch", CAMPAIGN["id"], *options)
    assert found == code
    assert ("slip1 failed" in err) == ("failed" in inversions)


def test_delete_asks_first_and_deletes(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    code, _, _ = run("delete", CAMPAIGN["id"])
    assert code == 1
    assert run.server.deleted == []
    code, out, _ = run("delete", CAMPAIGN["id"], "--yes")
    assert code == 0
    assert "deleted" in out
    assert run.server.deleted == [f"/v1/campaigns/{CAMPAIGN['id']}"]


def source(position, message="no earlier campaign has a source like it", **more):
    plain = {"reused": False, "campaign": None, "differs": [], "message": message}
    return {"position": position, **plain, **more}


def test_explain_says_one_reason_once_and_how_many_more_there_are():
    sources = [source(k) for k in range(11)]
    sources.append(source(11, "differs in slip", differs=["sources.shape"]))
    found = {
        "group": None, "state": "running", "remaining_s": 70.2, "waiting": [],
        "failures": [], "reuse": {"reused": 0, "of": 120, "sources": sources},
    }  # fmt: skip
    lines = explaining.lines(found)
    assert lines[0].endswith("running; about 70 s left")
    assert lines[2:] == [
        "  sources 0-10 not reused: no earlier campaign has a source like it",
        "  source 11 not reused: differs in slip: sources.shape",
        "  and 108 more sources; --group N tells of those of a group",
    ]


@pytest.mark.parametrize("state", ["complete", "failed", "cancelled"])
def test_explain_gives_no_time_to_what_has_ended(state):
    found = {
        "group": None, "state": state, "remaining_s": 0.0, "waiting": [],
        "failures": [], "reuse": {"reused": 0, "of": 0, "sources": []},
    }  # fmt: skip
    assert explaining.lines(found) == [f"[bold]campaign[/bold] is {state}"]


def test_show_says_the_remaining_time_once(run):
    run.server.campaign |= {"state": "running", "remaining_s": 70.0}
    out = run("show", CAMPAIGN["id"])[1]
    assert "remaining    about 70 s\n" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["show", "x", "--group", "a"], "must be a whole number"),
        (["show", "x", "--group", "-1"], "must be at least 0"),
        (["invert", "x", "--dataset", "a", "--choice", "luck"],
         "must be one of 'evidence'"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_in_plain_words(run, arguments, text):
    code, _, err = run(*arguments)
    assert code == 2
    assert text in " ".join(err.replace("│", " ").split())
    assert "Input should" not in err
    assert "Value error" not in err


@pytest.mark.parametrize("verb", verbs())
def test_the_help_names_arguments_and_options_in_words(run, verb):
    code, out, err = run(verb, "--help")
    if code == 1 and importlib.util.find_spec("sqlalchemy") is None:
        # where only the client is installed, verbs of the service say what brings them
        assert "pip install" in " ".join(err.split())
        return
    assert code == 0
    for odd in ("{", "}", "list[", "<spec>", "......"):
        assert odd not in out


@pytest.mark.parametrize(
    ("verb", "usage"),
    [("motion", "[OPTIONS] FILES..."), ("compare-rheologies", "[OPTIONS] RUN...")],
)
def test_a_verb_that_takes_several_says_so_by_dots(run, verb, usage):
    out = run(verb, "--help")[1]
    assert f"{usage} " in out
    assert "<path>" in out


@pytest.mark.parametrize("name", ["campaign.yaml", "nothing.nc", "folder"])
def test_export_of_what_is_no_result_is_bad_input(run, tmp_path, name):
    (tmp_path / "campaign.yaml").write_text("name: x\n")
    (tmp_path / "folder" / "coseismic").mkdir(parents=True)
    (tmp_path / "folder" / "coseismic" / "result.nc").touch()
    code, _, err = run("export", str(tmp_path / name), "--format", "gmt")
    assert code == 2
    said = {
        "campaign.yaml": "is no result of an inversion: it is not a NetCDF file",
        "nothing.nc": "there is no such file",
        "folder": "there are coseismic in it: name one of them",
    }
    assert said[name] in err
    assert "unable" not in err.lower()


def test_progress_in_a_file_is_a_line_for_each_change_of_state():
    stream = io.StringIO()
    with Display(Console(file=stream, width=40)) as display:
        campaign = {"name": "italy [2016]", "state": "building", "progress": {}}
        display.update(campaign)
        display.update(campaign)
        counts = {"total": 18, "accepted": 3, "running": 2}
        display.update(campaign | {"state": "running", "progress": counts})
        display.update(campaign | {"state": "running", "progress": counts})
    lines = stream.getvalue().splitlines()
    assert [line.partition(" ")[2] for line in lines] == [
        "italy [2016]: building, mesh and materials",
        "italy [2016]: running, 3 of 18 groups, 2 running",
    ]


def test_a_watched_campaign_has_the_whole_screen_until_it_ends():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, height=40)
    with Display(console, whole_screen=True) as display:
        groups = [{"index": n, "state": "running"} for n in range(60)]
        counts = {"total": 90, "accepted": 3, "running": 60}
        campaign = {"name": "italy", "state": "running", "progress": counts}
        display.update(campaign, groups)
        display.say("group 7 failed: [no] memory")
        end = time.monotonic() + 20
        while "Ctrl-C" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.05)  # it is drawn four times a second
    taken, _, rest = stream.getvalue().partition("\x1b[?1049l")
    assert "\x1b[?1049h" in taken
    assert "italy: running" in taken
    # as many groups as there is room for
    assert "group 31" in taken
    assert "group 32" not in taken
    # the screen is given back with what was said
    assert "group 7 failed: [no] memory" in rest
