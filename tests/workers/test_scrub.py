"""Reading what is stored to find damage on the disk."""

import hashlib
import os
from types import SimpleNamespace

import pytest

from afterslip_workers.messages import Group, GroupManifest
from afterslip_workers.store import paths, scrub
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
