"""A store in a bucket holds what a folder would, whole and checked."""

import sys
from pathlib import Path

import httpx
import numpy as np
import obstore
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import buckets
from supervised import FAKE, envelope

from afterslip_workers import entry
from afterslip_workers.process import delivery, supervisor
from afterslip_workers.process.children import Pool
from afterslip_workers.store import bucket, spool
from afterslip_workers.store.errors import StoreLostError


@pytest.fixture
def server(monkeypatch):
    with buckets.server(monkeypatch) as running:
        yield running


@pytest.fixture
def backend(server):
    return entry.open_store(server.bucket())


def test_files_are_written_listed_and_removed_like_in_a_folder(backend, tmp_path):
    assert backend.read("a/b") is None
    assert backend.size("a/b") is None
    backend.write("a/b", b"0123456789")
    backend.write("a/c/d", b"x")
    assert backend.read("a/b") == b"0123456789"
    assert backend.read_range("a/b", 2, 5) == b"234"
    assert backend.tail("a/b", 4) == b"6789"
    assert backend.keys("a") == ["a/b", "a/c/d"]
    assert backend.names("a") == ["b", "c"]
    backend.move([("a/b", "e/f")])
    assert backend.read("e/f") == b"0123456789"
    backend.remove("a")
    assert backend.keys("") == ["e/f"]


def test_first_of_two_writers_wins(backend):
    assert backend.create("models/m/meta.json", b"first")
    assert not backend.create("models/m/meta.json", b"second")
    assert backend.read("models/m/meta.json") == b"first"


def test_server_that_lets_the_second_writer_win_is_refused(backend, monkeypatch):
    backend.prepare()
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda *a, mode=None, **more: real(*a, **more))
    with pytest.raises(OSError, match="If-None-Match"):
        backend.prepare()


def test_large_file_travels_in_parts_and_reads_back_the_same(backend, tmp_path, server):
    content = np.random.default_rng(0).bytes(bucket._PART + 12345)
    path = tmp_path / "large"
    path.write_bytes(content)
    backend.upload(path, "large")
    assert backend.size("large") == len(content)
    with backend.local("large") as here:
        assert here.read_bytes() == content
    assert any("partNumber=2" in line for line in server.requests())


def test_object_beyond_the_servers_copy_is_sent_through(backend, monkeypatch):
    backend.write("old", b"0123456789")
    monkeypatch.setattr(bucket, "COPY_LIMIT", 4)
    backend.move([("old", "new")])
    assert backend.read("new") == b"0123456789"


@pytest.mark.parametrize(
    "address", ["s3://", "s3://key:secret@bucket/p", "s3://bucket/p?secret=1"]
)
def test_address_with_keys_is_refused_and_not_repeated(address):
    with pytest.raises(ValueError, match="AWS_SECRET_ACCESS_KEY") as refused:
        entry.open_store(address)
    assert "secret@" not in str(refused.value)
    assert "key:" not in str(refused.value)


def test_errors_are_one_line_without_keys(server, monkeypatch):
    backend = entry.open_store(server.bucket())
    server.stop()
    monkeypatch.setitem(bucket._RETRY, "max_retries", 0)
    with pytest.raises(StoreLostError) as lost:
        bucket.BucketBackend(backend.name).read("a")
    assert "\n" not in str(lost.value)
    assert buckets.SECRET not in str(lost.value)
    assert not bucket.BucketBackend(backend.name).reachable()


@pytest.fixture
def pool(monkeypatch, tmp_path):
    monkeypatch.setenv("AFTERSLIP_SPOOL", str(tmp_path / "spool"))
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    monkeypatch.setattr(delivery.deliverer, "kick", lambda: None)
    yield pool
    pool.close()


def test_attempt_works_here_and_leaves_everything_there(backend, pool):
    receipt = entry.execute(envelope(backend.name, do="write", seconds=0))
    assert receipt["outcome"] == "stored", receipt
    assert "spooled" not in receipt["stats"]
    there = {key.removeprefix("attempts/a1/") for key in backend.keys("attempts/a1")}
    assert there == {
        "group.zarr/x/c/0", "log.txt", "manifest.json", "progress.json", "receipt.json",
    }  # fmt: skip
    assert "line from compiled code" in entry.read_log(backend.name, "a1")
    assert spool.waiting() == []


def test_cancel_goes_through_the_bucket(backend, pool):
    entry.request_cancel(backend.name, "a1")
    receipt = entry.execute(envelope(backend.name, do="write", seconds=0))
    assert receipt["outcome"] == "cancelled"


def test_result_waits_here_while_the_bucket_is_away(backend, pool, server, monkeypatch):
    def away(path, key):
        raise StoreLostError("no route")

    with monkeypatch.context() as patch:
        patch.setattr(backend, "upload", away)
        receipt = entry.execute(envelope(backend.name, do="write", seconds=0))
        assert receipt["outcome"] == "stored"
        assert receipt["stats"]["spooled"]["class"] == "store_lost"
        assert delivery.deliver_all() == 1
    assert entry.read_receipt(backend.name, "a1") is None
    assert delivery.deliver_all() == 0
    assert (entry.read_receipt(backend.name, "a1") or {})["manifest"] == receipt[
        "manifest"
    ]
    assert httpx.get(f"{server.url}/bucket").status_code == 200
