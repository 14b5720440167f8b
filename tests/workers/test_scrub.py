"""Reading what is stored to find damage on the disk."""

import hashlib
import os
from types import SimpleNamespace

import pytest

from afterslip_workers.messages import Group, GroupManifest
from afterslip_workers.store import durable, paths, scrub
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.scrub import Stored

SIZE = 8 << 20


def in_memory(path, offset):
    """Tell whether a page of a file can be read without asking the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.preadv(handle, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    except BlockingIOError:
        return False
    finally:
        os.close(handle)


def test_scrubber_reads_the_disk_not_what_memory_holds(tmp_path):
    content = os.urandom(SIZE)
    digest = hashlib.sha256(content).hexdigest()
    LocalBackend(tmp_path).prepare()
    LocalBackend(tmp_path).write(paths.file(digest), content)
    path = tmp_path / paths.file(digest)
    path.read_bytes()
    if not hasattr(os, "RWF_NOWAIT") or not in_memory(path, SIZE - 1):
        pytest.skip("this system does not say what memory holds")
    cached = []
    stored = Stored(tmp_path)
    files = stored.of_shelf("files", digest)
    assert not stored.damaged(files, lambda _: cached.append(in_memory(path, SIZE - 1)))
    assert cached[0] is False, "the end of the file was not read yet"
    assert not in_memory(path, 0), "nor is it left in memory"


def test_checksums_of_a_group_hold_for_its_own_manifest_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(scrub, "root_of", lambda *_: SimpleNamespace(sealed=True))
    LocalBackend(tmp_path).prepare()

    def manifest(index, content):
        digest = hashlib.sha256(content).hexdigest()
        return GroupManifest(
            token="t1", campaign="c1", kind="greens", model_digest="sha256:m",
            group=Group(index=index, sources=[index]),
            files={"response/c/0/0": digest},
        )  # fmt: skip

    stored = Stored(tmp_path)
    stored.write_checksums("c1", manifest(1, b"a"))
    assert stored.checksums_hold("c1", manifest(1, b"a"))
    assert not stored.checksums_hold("c1", manifest(1, b"b"))
    assert not stored.checksums_hold("c1", manifest(2, b"a"))


def test_model_without_a_checksum_promises_a_file_of_no_content(tmp_path):
    """Damage to the facts of a model is found; their removal is not damage."""
    LocalBackend(tmp_path).prepare()
    stored, described = Stored(tmp_path), f"{paths.model('m')}/meta.json"
    assert stored.of_shelf("models", "m") == {}
    LocalBackend(tmp_path).write(described, b"{}")
    assert stored.of_shelf("models", "m") == {described: ""}
    assert stored.damaged(stored.of_shelf("models", "m"), lambda _: None)


def test_same_content_is_the_same_file_in_any_order_of_keys(tmp_path):
    durable.write_json(tmp_path / "a", {"b": 1, "a": 2})
    durable.write_json(tmp_path / "b", {"a": 2, "b": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
