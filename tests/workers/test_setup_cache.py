"""Set-ups stored on a worker's disk."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from afterslip_workers.machine import setup_cache
from afterslip_workers.machine.setup_cache import SetupCache


def arrays(seed=0, n=1000):
    rng = np.random.default_rng(seed)
    return {
        "values": rng.standard_normal((n, 3)),
        "half": rng.standard_normal(n).astype(np.float16),
        "numbers": rng.integers(0, 9, n).astype(np.uint32),
        "none": np.zeros((0, 3)),
    }


def never():
    raise AssertionError("made although it was stored")


def same(one, other):
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name])
        for name in one
    )


@pytest.fixture
def cache(tmp_path):
    return SetupCache(tmp_path / "setup")


def test_set_is_made_once(cache):
    cache.get("a", arrays)
    assert same(SetupCache(cache.folder).get("a", never), arrays())
    assert same(cache.get("b", lambda: arrays(1)), arrays(1))


@pytest.mark.parametrize("at", [0, 200, -200, None])
def test_damaged_file_is_made_again(cache, at):
    cache.get("a", arrays)
    (path,) = cache.folder.glob("*.npz")
    content = bytearray(path.read_bytes())
    if at is None:
        del content[len(content) // 2 :]
    else:
        content[at] ^= 0x55
    path.write_bytes(content)
    assert same(cache.get("a", arrays), arrays())
    assert same(cache.get("a", never), arrays())


def test_what_is_stored_is_found_and_nothing_else(cache):
    assert cache.find("a") is None
    cache.get("a", arrays)
    assert same(cache.find("a"), arrays())
    assert cache.find("b") is None
    assert SetupCache(cache.folder, limit=0.0).find("a") is None
    (path,) = cache.folder.glob("*.npz")
    path.write_bytes(path.read_bytes()[:-200])
    assert cache.find("a") is None


def test_every_changed_byte_of_an_array_is_noticed(cache):
    small = {"values": np.arange(6.0)}
    cache.get("a", lambda: small)
    (path,) = cache.folder.glob("*.npz")
    whole = path.read_bytes()
    start = whole.index(small["values"].tobytes())
    for k in range(start, start + small["values"].nbytes):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :])
        assert same(cache.get("a", lambda: small), small)


def test_what_was_used_longest_ago_goes_first(tmp_path):
    size = sum(array.nbytes for array in arrays().values())
    cache = SetupCache(tmp_path, limit=3.5 * size)
    for k, name in enumerate("abc"):
        cache.get(name, arrays)
        os.utime(tmp_path / f"{name}.npz", (k, k))
    cache.get("a", never)
    cache.get("d", arrays)
    names = {path.stem for path in tmp_path.glob("*.npz")}
    assert {"a", "d"} <= names
    assert "b" not in names
    total = sum(path.stat().st_size for path in tmp_path.glob("*.npz"))
    assert total <= cache.limit


def test_what_a_dead_process_left_half_written_is_removed(cache):
    cache.get("a", arrays)
    left, fresh = cache.folder / "b.1.partial", cache.folder / "c.2.partial"
    left.touch()
    fresh.touch()
    os.utime(left, (1, 1))
    cache.get("d", arrays)
    assert not left.exists()
    assert fresh.exists()  # somebody writes it now


def test_nothing_is_stored_where_nothing_may_be(tmp_path, monkeypatch):
    monkeypatch.setenv(setup_cache.ENV, str(tmp_path))
    monkeypatch.setenv(setup_cache.LIMIT_ENV, "0")
    assert same(SetupCache.here().get("a", arrays), arrays())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["a file", "full", "nearly full"])
def test_folder_that_takes_nothing_stops_nobody(tmp_path, monkeypatch, kind):
    folder = tmp_path / "setup"
    if kind == "a file":
        folder.write_text("not a folder")
    elif kind == "nearly full":
        usage = shutil.disk_usage(tmp_path)._replace(free=100_000)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    else:

        def full(*_args, **_more):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
    assert same(SetupCache(folder).get("a", arrays), arrays())
    assert not folder.is_dir() or not list(folder.glob("*.[np]*"))


MAKER = """
import sys, time
from pathlib import Path
import numpy as np
from afterslip_workers.machine.setup_cache import SetupCache

def make():
    with Path(sys.argv[2]).open("a") as stream:
        stream.write("made\\n")
    time.sleep(0.5)
    return {"values": np.arange(5.0)}

SetupCache(Path(sys.argv[1])).get("a", make)
"""


def test_one_process_makes_what_the_others_wait_for(tmp_path):
    output = tmp_path / "output"
    command = [sys.executable, "-c", MAKER, tmp_path / "setup", output]
    made = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(60) for process in made] == [0, 0, 0]
    assert output.read_text() == "made\n"


def test_file_system_without_locks_keeps_nobody_waiting(cache, monkeypatch):
    def refuse(*_args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(time, "sleep", never)
    assert same(cache.get("a", arrays), arrays())
    assert same(cache.get("a", never), arrays())


def test_nobody_waits_for_ever_for_one_that_hangs(cache, monkeypatch):
    monkeypatch.setattr(setup_cache, "PATIENCE_S", 0.3)
    with cache._held("a"):
        assert same(SetupCache(cache.folder).get("a", arrays), arrays())


@pytest.mark.parametrize("what", ["file", "folder"])
def test_set_that_others_could_have_written_is_made_again(cache, what):
    cache.get("a", lambda: arrays(1))
    (path,) = cache.folder.glob("*.npz")
    (path if what == "file" else cache.folder).chmod(0o777)
    assert same(cache.get("a", arrays), arrays())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_set_of_another_account_is_made_again(cache):
    cache.get("a", lambda: arrays(1))
    (path,) = cache.folder.glob("*.npz")
    os.chown(path, 65534, 65534)
    assert same(cache.get("a", arrays), arrays())


def test_folder_is_closed_to_others(cache):
    cache.get("a", arrays)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
