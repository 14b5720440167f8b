"""Commands that need the service, as a user meets them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import typer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import LocalCluster
from distributed.diagnostics import nvml
from distributed.system_monitor import SystemMonitor
from typer.testing import CliRunner

from afterslip_service.commands import doctor, doctor_checks, serve
from afterslip_service.commands.doctor import examine
from afterslip_service.db import leases
from afterslip_service.placement import cluster as placement
from afterslip_service.placement import local
from afterslip_service.placement.launch import worker_command
from afterslip_service.settings import Settings
from afterslip_workers import entry

AFTERSLIP = str(Path(sys.executable).with_name("afterslip"))
# stands for pynvml where three GPUs are
DRIVER = SimpleNamespace(
    nvmlInit=lambda: None, nvmlDeviceGetCount=lambda: 3, NVMLError=OSError
)


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
    (packages,) = [line for line in done.output.splitlines() if "packages" in line]
    assert "afterslip" in packages
    assert "sqlalchemy" in packages  # the last of them: no line is cut or wrapped


def test_workers_that_do_not_end_in_time_are_no_error_of_the_service(monkeypatch):
    class Slow:
        def close(self, timeout):
            raise TimeoutError(f"timed out after {timeout} s.")

    monkeypatch.setattr(local, "_start", lambda *_: Slow())
    cluster = local.LocalCluster(1)
    cluster.close()
    assert not cluster.scratch.exists()


def test_doctor_says_what_is_wrong_with_a_hint_and_exits_1(tmp_path):
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
def test_serve_refuses_to_listen_on_the_network(tmp_path, host):
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
    on_gpu = worker_command("tcp://h:1", 1, gpu=True)
    assert "--no-dashboard" in on_gpu
    # dask-cuda's module takes what comes first for the address
    assert "-m dask_cuda.cli tcp://h:1 " in " ".join(on_gpu)


def test_worker_on_a_gpu_takes_a_group_more_than_the_two_it_solves():
    assert "--nthreads 3" in " ".join(worker_command("tcp://h:1", 1, gpu=True))


def test_worker_tells_of_its_gpu_what_dask_measures(monkeypatch):
    readings = {"utilization": None, "memory-used": 7_000_000_000}
    total = {"name": "card", "memory-total": 140_000_000_000}
    monkeypatch.setattr(nvml, "device_get_count", lambda: 1)
    monkeypatch.setattr(nvml, "one_time", lambda: total)
    monkeypatch.setattr(nvml, "real_time", lambda: readings)
    # not every driver tells how busy a GPU is
    assert placement._gpu(SystemMonitor().recent()) == {"gpu_memory_used": 7e9}
    readings["utilization"] = 93
    shown = placement._gpu(SystemMonitor().recent())
    assert shown == {"gpu_memory_used": 7e9, "gpu_utilization": 93}
    monkeypatch.setattr(nvml, "device_get_count", lambda: 0)
    assert placement._gpu(SystemMonitor().recent()) == {}


@pytest.mark.parametrize(("cards", "threads"), [([], 1), ([{"name": "card"}], 3)])
def test_cluster_of_our_own_does_so_too(monkeypatch, cards, threads):
    asked = []
    monkeypatch.setattr(entry, "describe_worker", lambda: {"gpus": cards})
    monkeypatch.setattr(local, "gpus", list)
    monkeypatch.setattr(
        local._dask, "LocalCluster", lambda **options: asked.append(options)
    )
    local._start(3, None)
    assert [asked[0][name] for name in ("n_workers", "threads_per_worker")] == [
        3,
        threads,
    ]


@pytest.mark.parametrize(
    ("chosen", "workers", "expected"),
    [(None, None, ["0", "1", "2"]), ("2,1", None, ["2", "1"]), ("2, 1", 1, ["2"])],
)
def test_cluster_of_our_own_uses_the_visible_gpus_alone(
    monkeypatch, chosen, workers, expected
):
    asked = []
    monkeypatch.setitem(sys.modules, "pynvml", DRIVER)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    # set so that it is put back
    monkeypatch.setenv(entry.SHARES_ENV, "1")
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.setattr(
        local, "_cuda_cluster", lambda: lambda **options: asked.append(options)
    )
    local._start(workers, None)
    assert asked[0]["CUDA_VISIBLE_DEVICES"] == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("", []), ("-1", []), ("1,-1,0", ["1"]), ("GPU-5", ["GPU-5"])],
)
def test_hidden_gpus_are_none(monkeypatch, chosen, expected):
    monkeypatch.setitem(sys.modules, "pynvml", DRIVER)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert local.gpus() == expected


@pytest.mark.slow
def test_serve_starts_and_stops_in_good_order(tmp_path):
    process = subprocess.Popen(
        [AFTERSLIP, "serve", "--port", "0", "--workers", "1",
         "--database", str(tmp_path / "d"), "--store", str(tmp_path / "s")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
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
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def looked_at(**changes):
    return {f.name: f for f in doctor_checks.checks(Settings(**changes))}


@pytest.fixture
def pair(tmp_path):
    """Make a certificate that ends some days from now, and its key."""

    def make(days, name="server"):
        public, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        secret = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(subject)
            .public_key(secret.public_key()).serial_number(1)
            .not_valid_before(now - timedelta(days=99))
            .not_valid_after(now + timedelta(days=days))
            .sign(secret, hashes.SHA256())
        )  # fmt: skip
        public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8
        plain = serialization.NoEncryption()
        key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, form, plain))
        return {"tls_certificate": public, "tls_key": key}

    return make


@pytest.mark.parametrize(
    ("days", "state", "text"),
    [(90, "ok", "valid until"), (5, "note", "valid until"), (-1, "wrong", "expired")],
)
def test_doctor_says_how_long_the_certificate_lasts(pair, days, state, text):
    found = looked_at(**pair(days))["TLS"]
    assert found.state == state
    assert text in found.detail


def test_doctor_names_a_key_of_another_certificate_or_none_at_all(pair):
    mine, other = pair(90), pair(90, "other")
    mixed = looked_at(**{**mine, "tls_key": other["tls_key"]})["TLS"]
    assert mixed.state == "wrong"
    mine["tls_key"].unlink()
    gone = looked_at(**mine)["TLS"]
    assert gone.state == "wrong"
    assert "No such file" in gone.detail


def test_doctor_names_a_token_that_others_may_read(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text("afs_secret")
    monkeypatch.setenv("AFTERSLIP_TOKEN_FILE", str(file))
    file.chmod(0o644)
    found = looked_at()["token"]
    assert found.state == "wrong"
    assert "chmod 600" in found.detail
    assert "afs_secret" not in found.detail
    file.chmod(0o600)
    assert looked_at()["token"].state == "ok"


def test_doctor_names_a_spool_that_is_small_or_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    assert looked_at()["spool"].state in {"ok", "note"}
    monkeypatch.setattr(doctor_checks, "SMALL_DISK", 2**70)
    assert looked_at()["spool"].state == "note"
    (tmp_path / "file").touch()
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "file"))
    assert looked_at()["spool"].state == "wrong"


def test_doctor_notes_a_clock_that_differs_from_the_databases(database, monkeypatch):
    assert doctor_checks.clock(database).state == "ok"
    ahead = datetime.now(UTC) + timedelta(seconds=30)
    monkeypatch.setattr(doctor_checks, "moment", lambda _: ahead)
    found = doctor_checks.clock(database)
    assert found.state == "note"
    assert "by 30.0 s" in found.detail or "by 29.9 s" in found.detail


def test_doctor_says_that_a_scheduler_has_no_workers():
    with LocalCluster(
        n_workers=0, processes=False, dashboard_address=None, host="127.0.0.1",
        protocol="tcp://",
    ) as cluster:  # fmt: skip
        found = doctor_checks.scheduler(cluster.scheduler_address)
    assert found.state == "wrong"
    assert "has no workers" in found.detail


def test_an_api_alone_passes_on_what_the_dispatcher_says(client, monkeypatch):
    service = client.server.app.state.service
    monkeypatch.setattr(service, "placement", None)
    reported = {"trouble": "the Dask scheduler has no workers"}
    monkeypatch.setattr(leases, "facts", lambda *_: reported)
    placement = client.get("/readyz").json()["parts"]["placement"]
    assert placement == {"ok": True, "detail": reported["trouble"]}
