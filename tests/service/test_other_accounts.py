"""What another account of the machine can do to a service: nothing."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import distributed
import psutil
import pytest
from cryptography import x509
from typer.testing import CliRunner

from afterslip.cli.main import app
from afterslip_service.errors import SchedulerRefusedError
from afterslip_service.placement.cluster import Cluster
from afterslip_service.settings import check_scheduler

worker = import_module("afterslip_service.commands.worker")
SCRIPT = Path(__file__).with_name("other_account.py")
as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become another account"
)


def other_account(*words):
    """Return what succeeded as another account."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def listening(process):
    """Return the ports that a process and its children listen on."""
    return {
        f"{found.laddr.ip}:{found.laddr.port}"
        for member in [process, *process.children(recursive=True)]
        for found in member.net_connections("inet")
        if found.status == psutil.CONN_LISTEN
    }


@pytest.fixture(scope="module")
def cluster():
    made = Cluster("local", workers=1)
    yield made
    made.close()


@as_root
def test_another_account_runs_no_code_behind_a_port_of_the_local_cluster(cluster):
    ports = listening(psutil.Process())
    # scheduler, nanny and worker, and the pages of the worker and the scheduler
    assert len(ports) >= 3
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert other_account("connect", *ports) == []


@as_root
def test_the_attempt_would_succeed_on_a_cluster_without_tls():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as plain:
        nanny = plain.workers[0]
        addresses = [plain.scheduler_address, nanny.address, nanny.worker_address]
        found = other_account("connect", *addresses)
    assert [address for address, _ in found] == addresses


def test_keys_of_the_local_cluster_are_in_no_file(cluster):
    security = cluster._cluster.dask.security
    assert security.require_encryption
    for role in ("client", "scheduler", "worker"):
        assert "PRIVATE KEY" in security.get_tls_config_for_role(role)["key"]


def test_certificate_of_the_local_cluster_lasts_as_long_as_any_service(cluster):
    security = cluster._cluster.dask.security
    for role in ("client", "scheduler", "worker"):
        content = security.get_tls_config_for_role(role)["cert"].encode()
        valid = x509.load_pem_x509_certificate(content)
        assert valid.not_valid_before_utc.year < 2020
        assert valid.not_valid_after_utc.year == 9999


def test_scratch_folder_in_the_search_path_is_one_that_nobody_else_may_enter(cluster):
    mode = cluster._cluster.scratch.stat().st_mode
    assert stat.S_IMODE(mode) == 0o700
    (paths,) = cluster._client.run(lambda: __import__("sys").path).values()
    for path in {*paths, *sys.path}:
        if "dask-scratch-space" in path:
            assert Path(path).is_relative_to(cluster._cluster.scratch)


def test_scratch_folder_is_gone_when_the_cluster_is_closed(monkeypatch, tmp_path):
    made = Cluster("local", workers=1)
    assert made._cluster is not None
    scratch = made._cluster.scratch
    assert scratch.is_dir()
    monkeypatch.syspath_prepend(tmp_path)
    made.close()
    assert not scratch.exists()
    # who made it again could put modules there
    assert not [path for path in sys.path if Path(path).is_relative_to(scratch)]


@pytest.mark.parametrize("address", ["tcp://10.0.0.7:8786", "tcp://[fe80::1]:8786"])
def test_scheduler_without_tls_on_the_network_is_refused_where_tokens_are(address):
    with pytest.raises(SchedulerRefusedError, match="speaks no TLS"):
        check_scheduler(address, auth=True)
    assert check_scheduler(address, auth=False) is None


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786"])
def test_scheduler_without_tls_on_loopback_is_warned_of(address):
    assert "runs code" in str(check_scheduler(address, auth=True))


@pytest.mark.parametrize("address", ["local", "tls://scheduler:8786"])
def test_scheduler_that_others_cannot_use_needs_no_warning(address):
    assert check_scheduler(address, auth=True) is None


@pytest.mark.parametrize("command", ["serve", "dispatch"])
def test_commands_refuse_a_scheduler_without_tls(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFTERSLIP_AUTH", "on")
    runner = CliRunner()
    done = runner.invoke(app, [command, "--scheduler", "tcp://10.0.0.7:8786"])
    assert done.exit_code != 0
    assert isinstance(done.exception, SchedulerRefusedError)


def test_scratch_folder_of_a_worker_of_others_is_its_own(monkeypatch):
    asked = []

    def watch(command, note, drain):
        asked.append((Path(os.environ[worker.SCRATCH]), note))
        assert stat.S_IMODE(asked[0][0].stat().st_mode) == 0o700
        return 0

    monkeypatch.setattr(worker, "_watch", watch)
    monkeypatch.setenv(worker.SCRATCH, "/tmp")
    CliRunner().invoke(app, ["worker", "tls://127.0.0.1:1", "--cpu"])
    assert asked[0][0] == asked[0][1].parent
