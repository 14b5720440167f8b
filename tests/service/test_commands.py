"""Commands that need the service, as a user meets them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner

from afterslip_service.commands import doctor, serve
from afterslip_service.commands.doctor import examine
from afterslip_service.placement.launch import worker_command
from afterslip_service.settings import Settings

AFTERSLIP = str(Path(sys.executable).with_name("afterslip"))


def call(function, *arguments):
    app = typer.Typer()
    app.command()(function)
    return CliRunner().invoke(app, arguments)


def test_doctor_passes_here_and_shows_each_thing(tmp_path):
    database = str(tmp_path / "db.sqlite")
    done = call(doctor, "--database", database, "--store", str(tmp_path / "s"))
    assert done.exit_code == 0, done.output
    for name in ("Python", "packages", "CPU", "memory", "GPU", "gmsh", "store", "disk"):
        assert name in done.output


def test_doctor_says_what_is_wrong_with_the_mend_and_exits_1(tmp_path):
    url = "postgresql://nobody:secret@127.0.0.1:1/none"
    done = call(doctor, "--database", url, "--store", str(tmp_path))
    assert done.exit_code == 1
    assert "wrong" in done.output
    assert "--database" in done.output
    assert "secret" not in done.output


def test_doctor_notes_a_database_without_a_schema(tmp_path):
    (tmp_path / "db.sqlite").touch()
    settings = Settings(database=str(tmp_path / "db.sqlite"), store=tmp_path)
    found = {finding.name: finding for finding in examine(settings)}
    assert found["database"].state == "note"
    assert "upgraded" in found["database"].detail


def test_doctor_names_a_store_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    settings = Settings(database=str(tmp_path / "d"), store=tmp_path / "file")
    found = {finding.name: finding for finding in examine(settings)}
    assert found["store"].state == "wrong"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_serve_refuses_to_listen_for_strangers(tmp_path, host):
    done = call(serve, "--host", host, "--database", str(tmp_path / "d"))
    assert done.exit_code == 1
    assert "no authentication" in str(done.exception)
    assert not (tmp_path / "d").exists()


def test_serve_says_that_the_scheduler_is_away(tmp_path):
    options = ["--scheduler", "tcp://127.0.0.1:1", "--store", str(tmp_path / "s")]
    done = call(serve, "--port", "0", "--database", str(tmp_path / "d"), *options)
    assert done.exit_code == 1
    assert "no Dask scheduler answers" in str(done.exception)


def test_worker_command_keeps_one_thread_and_no_dashboard():
    command = worker_command("tcp://h:1", 3, gpu=False)
    joined = " ".join(command)
    assert "--nthreads 1" in joined
    assert "--nworkers 3" in joined
    assert "--no-dashboard" in joined
    assert "--preload afterslip_workers.lifecycle" in joined


@pytest.mark.slow
def test_serve_starts_and_stops_in_good_order(tmp_path):
    process = subprocess.Popen(
        [AFTERSLIP, "serve", "--port", "0", "--workers", "1",
         "--database", str(tmp_path / "d"), "--store", str(tmp_path / "s")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    line = process.stdout.readline()
    assert "afterslip serves at http://127.0.0.1:" in line
    url = line.split()[-1]
    for _ in range(100):
        if httpx.get(url + "/readyz").status_code == 200:
            break
        time.sleep(0.1)
    assert httpx.get(url + "/v1/workers").json()["items"][0]["slots"] == 1
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) in (0, -signal.SIGTERM)
    assert time.monotonic() - began < 10
    assert "Traceback" not in process.stderr.read()
