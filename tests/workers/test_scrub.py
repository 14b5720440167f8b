"""Reading what is stored to find damage on the disk."""

import hashlib
import os

import pytest

from afterslip_workers.store import paths
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
