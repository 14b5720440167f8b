"""Kernels are cached where files can be made, never where others could put theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from afterslip_solver.jit import cache_folders


@pytest.fixture
def locked(monkeypatch, tmp_path):
    """An installation and a home that cannot be written to."""
    for name in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(cache_folders, "_writable", lambda _: False)
    # what the test sets is taken back with this
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    with pytest.MonkeyPatch.context() as other:
        other.setenv("NUMBA_CACHE_DIR", "")
        other.setenv("CUPY_CACHE_DIR", "")
        del os.environ["NUMBA_CACHE_DIR"], os.environ["CUPY_CACHE_DIR"]
        yield tmp_path


def test_kernels_of_a_locked_installation_go_where_only_the_user_writes(locked):
    cache_folders.keep()
    folder = Path(os.environ["NUMBA_CACHE_DIR"]).parent
    assert folder == locked / f"afterslip-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert Path(os.environ["CUPY_CACHE_DIR"]).parent == folder


def test_a_folder_that_others_can_write_to_is_not_taken(locked):
    (locked / f"afterslip-{os.getuid()}").mkdir()
    (locked / f"afterslip-{os.getuid()}").chmod(0o777)
    cache_folders.keep()
    folder = Path(os.environ["NUMBA_CACHE_DIR"]).parent
    assert folder.parent == locked
    assert folder.name != f"afterslip-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_given_folders_stay(locked, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/given/numba")
    monkeypatch.setenv("CUPY_CACHE_DIR", "/given/cupy")
    cache_folders.keep()
    assert os.environ["NUMBA_CACHE_DIR"] == "/given/numba"
    assert os.environ["CUPY_CACHE_DIR"] == "/given/cupy"


def test_a_home_without_room_is_no_reason_to_fail(tmp_path):
    code = (
        "import os, afterslip_solver\n"
        "from afterslip_solver.mesh.tables.sorting import by_number\n"
        "print(os.environ['CUPY_CACHE_DIR'])"
    )
    keep = {k: v for k, v in os.environ.items() if not k.endswith("_CACHE_DIR")}
    env = {**keep, "HOME": "/proc/nobody", "TMPDIR": str(tmp_path)}
    env.pop("XDG_CACHE_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / f"afterslip-{os.getuid()}" / "cupy")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_cache_that_another_account_has_made_is_not_taken(locked, monkeypatch):
    monkeypatch.setattr(
        cache_folders, "_writable", lambda f: f != Path(cache_folders.__file__).parent
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(locked / "shared"))
    (locked / "shared/afterslip").mkdir(parents=True)
    os.chown(locked / "shared/afterslip", 65534, 65534)
    cache_folders.keep()
    assert Path(os.environ["NUMBA_CACHE_DIR"]).parent.name == f"afterslip-{os.getuid()}"


def test_the_cache_of_the_user_is_closed_to_others(locked, monkeypatch):
    monkeypatch.setattr(
        cache_folders, "_writable", lambda f: f != Path(cache_folders.__file__).parent
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(locked / "mine"))
    cache_folders.keep()
    assert (locked / "mine/afterslip").stat().st_mode & 0o777 == 0o700
