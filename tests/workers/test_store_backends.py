"""A store in a folder and one in a bucket do the same."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import buckets

from afterslip_workers import entry
from afterslip_workers.store import backend as files
from afterslip_workers.store.errors import StoreLostError
from afterslip_workers.store.local import LocalBackend


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(params=["folder", "bucket"])
def backend(request, tmp_path, monkeypatch):
    if request.param == "folder":
        entry.prepare(tmp_path / "store")
        yield entry.open_store(tmp_path / "store")
        return
    with buckets.server(monkeypatch) as server:
        yield entry.open_store(server.bucket())


def test_what_is_absent_differs_from_what_is_empty(backend):
    assert backend.read("a/b") is None
    assert backend.size("a/b") is None
    assert backend.digest("a/b") is None
    assert backend.tail("a/b", 4) == b""
    assert backend.keys("a") == []
    assert backend.names("a") == []
    backend.write("a/b", b"")
    assert backend.read("a/b") == b""
    assert backend.size("a/b") == 0
    assert backend.digest("a/b") == backend.sha256("a/b") == sha(b"")


def test_parts_of_a_file(backend):
    backend.write("a/b", b"0123456789")
    assert backend.size("a/b") == 10
    assert backend.read_range("a/b", 0, 3) == b"012"
    assert backend.read_range("a/b", 7, 10) == b"789"
    assert backend.tail("a/b", 3) == b"789"
    assert backend.tail("a/b", 10) == backend.tail("a/b", 99) == b"0123456789"


def test_a_file_that_is_replaced_is_read_anew(backend):
    backend.write("a/b", b"first")
    assert backend.digest("a/b") == sha(b"first")
    backend.write("a/b", b"second one")
    assert backend.read("a/b") == b"second one"
    assert backend.digest("a/b") == backend.sha256("a/b") == sha(b"second one")


def test_only_the_first_creates(backend):
    assert backend.create("a/once", b"first")
    assert not backend.create("a/once", b"second")
    assert backend.read("a/once") == b"first"
    assert backend.keys("a") == ["a/once"], "and leaves nothing beside it"


def test_keys_are_of_files_below_and_names_of_what_is_right_there(backend):
    for key in ("a/z", "a/b/c", "a/b/d/e", "ab/x"):
        backend.write(key, key.encode())
    assert backend.keys("a") == ["a/b/c", "a/b/d/e", "a/z"]
    assert backend.names("a") == ["b", "z"]
    assert backend.names("a/b") == ["c", "d"]


def test_an_upload_is_a_copy(backend, tmp_path):
    path = tmp_path / "given"
    path.write_bytes(b"numbers" * 1000)
    backend.upload(path, "files/new")
    path.write_bytes(b"others")
    assert backend.read("files/new") == b"numbers" * 1000
    backend.upload(path, "files/new")
    assert backend.read("files/new") == b"others"
    with backend.local("files/new") as copy:
        assert copy.read_bytes() == b"others"


def test_an_added_file_has_the_name_that_its_writer_found(backend):
    def write(path):
        path.write_bytes(b"numbers")

    def name(path):
        assert path.read_bytes() == b"numbers"
        return "by content"

    backend.add("models/m", write, name)
    assert backend.keys("models") == ["models/m/by content"]
    assert backend.read("models/m/by content") == b"numbers"

    def fail(path):
        path.write_bytes(b"half")
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        backend.add("models/m", fail, name)
    with pytest.raises(OSError, match="disk"):
        backend.add("models/m", write, fail)
    assert backend.keys("models") == ["models/m/by content"]


def test_moved_files_are_where_they_were_sent(backend):
    backend.write("attempts/a/x", b"x")
    backend.write("attempts/a/y", b"y")
    backend.write("campaigns/c/y", b"older")
    backend.move(
        [("attempts/a/x", "campaigns/c/deep/x"), ("attempts/a/y", "campaigns/c/y")]
    )
    assert backend.read("campaigns/c/deep/x") == b"x"
    assert backend.read("campaigns/c/y") == b"y"
    # of a bucket they go with their attempt
    backend.remove("attempts/a")
    assert backend.keys("attempts") == []


def test_a_file_or_a_folder_is_removed_and_its_neighbours_stay(backend):
    for key in ("a/b", "a/bc", "a/d/e", "a/d/f"):
        backend.write(key, b"x")
    backend.remove("a/b")
    assert backend.keys("a") == ["a/bc", "a/d/e", "a/d/f"]
    backend.remove("a/d")
    assert backend.keys("a") == ["a/bc"]
    backend.remove("a/d")
    backend.remove("nothing/there")
    assert backend.keys("a") == ["a/bc"]


def test_nobody_writes_by_way_of_an_attempt_that_is_gone(backend):
    backend.write("attempts/a/progress.json", b"{}")
    backend.write_by_way_of("attempts/a", "campaigns/c/sums", b"1")
    backend.write_by_way_of("attempts/a", "campaigns/c/sums", b"2")
    assert backend.read("campaigns/c/sums") == b"2"
    assert backend.keys("attempts/a") == ["attempts/a/progress.json"]
    backend.remove("attempts/a")
    with pytest.raises(FileNotFoundError):
        backend.write_by_way_of("attempts/a", "campaigns/c/sums", b"3")
    assert backend.read("campaigns/c/sums") == b"2"
    assert backend.keys("attempts") == []


def test_json_is_read_back_and_anything_else_is_none(backend):
    files.write_json(backend, "a.json", {"b": [1, None, "ä"]})
    assert files.read_json(backend, "a.json") == {"b": [1, None, "ä"]}
    backend.write("a.json", b'{"b": [1')
    assert files.read_json(backend, "a.json") is None
    assert files.read_json(backend, "other.json") is None


def test_a_store_that_is_there_says_so(backend):
    backend.prepare()
    assert backend.reachable()
    assert not backend.full()
    backend.probe()


def test_names_of_files_that_are_being_written_are_no_keys(tmp_path):
    entry.prepare(tmp_path)
    backend = LocalBackend(tmp_path)
    backend.write("files/whole", b"x")
    (tmp_path / "files" / ".half.1234.partial").write_bytes(b"x")
    assert backend.keys("files") == ["files/whole"]


@pytest.mark.parametrize("gone", ["campaigns", "attempts"])
def test_a_folder_that_lost_a_part_of_the_store_is_not_made_anew(tmp_path, gone):
    """An empty mount point is a folder as well."""
    entry.prepare(tmp_path)
    backend = LocalBackend(tmp_path)
    (tmp_path / gone).rmdir()
    assert not backend.reachable()
    for write in (
        lambda: backend.write("files/x", b"x"),
        lambda: backend.create("files/x", b"x"),
        lambda: backend.upload(Path(__file__), "files/x"),
        lambda: backend.add("files", Path.touch, lambda _: "x"),
    ):
        with pytest.raises(StoreLostError, match="cannot be reached"):
            write()
    assert backend.keys("files") == []
    assert not (tmp_path / gone).exists()


def test_a_disk_without_space_is_full(tmp_path, monkeypatch):
    from types import SimpleNamespace

    backend, free = LocalBackend(tmp_path), [0]
    usage = lambda path: SimpleNamespace(free=free[0])  # noqa: E731
    monkeypatch.setattr("shutil.disk_usage", usage)
    assert backend.full()
    free[0] = 1 << 30
    assert not backend.full()


@pytest.mark.parametrize(
    "step", ["write", "upload", "add", "create", "write_by_way_of"]
)
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path, monkeypatch, step):
    entry.prepare(tmp_path)
    backend = LocalBackend(tmp_path)
    backend.write("attempts/a/log", b"")
    if step != "create":
        backend.write("files/x", b"old")
    act = {
        "write": lambda: backend.write("files/x", b"new"),
        "upload": lambda: backend.upload(Path(__file__), "files/x"),
        "add": lambda: backend.add("files", Path.touch, lambda _: "x"),
        "create": lambda: backend.create("files/x", b"new"),
        "write_by_way_of": lambda: backend.write_by_way_of(
            "attempts/a", "files/x", b"n"
        ),
    }[step]
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk")))
        with pytest.raises(OSError, match="disk"):
            act()
    assert backend.read("files/x") == (None if step == "create" else b"old")
    everything = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(everything) == (1 if step == "create" else 2), "no scratch is left"
