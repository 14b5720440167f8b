"""Files of a service are closed to the other accounts of its machine."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny_worker
from test_other_accounts import as_root, other_account

from afterslip.client import Client
from afterslip_service import embedded, umask
from afterslip_service.errors import ServiceError
from afterslip_service.placement.inprocess import InProcess
from afterslip_workers.store import spool
from afterslip_workers.store.local import LocalBackend

sys.path.insert(0, str(Path(__file__).parents[1] / "workers"))
from small_campaign import NAMES, SPEC, X_KM, Y_KM

STATIONS = "station,x_km,y_km\n" + "".join(
    f"{name},{x},{y}\n" for name, x, y in zip(NAMES, X_KM, Y_KM, strict=True)
)


@pytest.fixture
def open_folder():
    """A folder that every account may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="afterslip-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def everything(folder):
    """Return what lies in a folder; the sockets of others and links apart."""
    return [path for path in folder.rglob("*") if not path.is_symlink()]


def open_to(paths, bits):
    """Return the paths that have some of these bits."""
    return {
        f"{path}: {stat.S_IMODE(path.stat().st_mode):o}"
        for path in paths
        if path.exists() and path.stat().st_mode & bits
    }


@contextmanager
def serving(folder, **environment):
    """Run ``afterslip serve`` in a folder, started with a generous umask."""
    given = {
        **os.environ,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "AFTERSLIP_SETUP": str(folder / "setup"),
        "AFTERSLIP_SPOOL": str(folder / "spool"),
        **environment,
    }
    words = ["serve", "--port", "0", "--workers", "1", "--store", "store"]
    with (folder / "service.log").open("w") as log:
        (folder / "service.log").chmod(0o600)
        process = subprocess.Popen(
            [Path(sys.executable).parent / "afterslip", *words],
            cwd=folder,
            env=given,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            umask=0o022,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "serves at" in line, (folder / "service.log").read_text()
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def run_campaign(url, folder):
    """Solve a small campaign to its end."""
    (folder / "stations.csv").write_text(STATIONS)
    with Client(url) as client:
        handle = client.submit(SPEC, files_base=folder)
        handle.wait(progress=False, timeout=120)
        assert handle.state == "complete"
    (folder / "stations.csv").unlink()


@pytest.mark.slow
@as_root
def test_another_account_reads_and_writes_nothing_of_a_service(open_folder):
    (open_folder / "open").write_text("for all")
    with serving(open_folder) as url:
        run_campaign(url, open_folder)
        found = everything(open_folder)
        names = {path.name for path in found}
        # while the service runs: its journal is there as well
        assert {"afterslip.sqlite", "afterslip.sqlite-wal", "store", "setup"} <= names
        assert "zarr.json" in names
        assert [Path(p).name for p, _ in other_account("read", *found)] == ["open"]
        assert other_account("write", *found) == []


@pytest.mark.slow
def test_group_may_share_the_files_where_the_umask_says_so(open_folder):
    with serving(open_folder, AFTERSLIP_UMASK="007") as url:
        run_campaign(url, open_folder)
        shared = [*everything(open_folder / "store"), open_folder / "afterslip.sqlite"]
        assert len(shared) > 10
        assert open_to(shared, stat.S_IRWXO) == set()
        # what a library makes as a private temporary file and renames stays so
        assert all(path.stat().st_mode & stat.S_IRGRP for path in shared)


def test_embedded_service_keeps_its_folder_to_itself(open_folder, worker):
    place = open_folder / "run"
    before = os.umask(0o022)
    try:
        with (
            embedded.start(
                place, placement=lambda _: InProcess(worker, 2), tick=0.02
            ) as service,
            Client(service.url) as client,
        ):
            client.submit(tiny_worker.spec()).wait(timeout=20)
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
            files = list(place.iterdir())
            assert len(files) >= 4
            assert open_to(files, stat.S_IRWXG | stat.S_IRWXO) == set()
        # the umask of the program is its own matter
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_folder_that_is_there_keeps_its_mode(open_folder, worker):
    open_folder.chmod(0o750)
    embedded.start(open_folder, placement=lambda _: InProcess(worker, 2)).close()
    assert stat.S_IMODE(open_folder.stat().st_mode) == 0o750


def test_new_spool_is_closed_to_others(open_folder, monkeypatch):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(open_folder / "spool"))
    spool.make(LocalBackend(open_folder / "store"), "a1")
    assert stat.S_IMODE((open_folder / "spool").stat().st_mode) == 0o700


@pytest.mark.parametrize("text", ["777", "abc", "-1", "1000", "100"])
def test_umask_that_is_none_is_one_clear_sentence(monkeypatch, text):
    monkeypatch.setenv(umask.ENV, text)
    sentence = f"AFTERSLIP_UMASK is '{text}'"
    with pytest.raises(ServiceError, match=sentence), umask.private_files():
        pass
