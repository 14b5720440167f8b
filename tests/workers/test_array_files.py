"""Archives of arrays are read as NumPy reads them, and damage is an error."""

from __future__ import annotations

import errno
import gc
import os
import struct
import sys
import time
import zipfile
from typing import Any

import numpy as np
import pytest

from afterslip_workers.machine import array_files
from afterslip_workers.machine.array_files import read_arrays, write_arrays

ARRAYS: dict[str, Any] = {
    "plain": np.array('{"format": 1}'),
    "number": np.array(3.5),
    "none": np.zeros((0, 3)),
    "rows": np.arange(30_000, dtype=np.int32).reshape(-1, 10),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "swapped": np.arange(5, dtype=">f8"),
    "flags": np.array([True, False, True]),
}


@pytest.fixture
def archive(tmp_path):
    np.savez(tmp_path / "arrays.npz", **ARRAYS)
    return tmp_path / "arrays.npz"


@pytest.mark.parametrize("piece", [1 << 24, 100])
def test_files_are_those_that_numpy_writes(archive, tmp_path, monkeypatch, piece):
    monkeypatch.setattr(array_files, "_PIECE", piece)
    apart = {**ARRAYS, "apart": np.arange(40.0).reshape(8, 5)[::2, ::3]}
    np.savez(archive, **apart)
    own = tmp_path / "own.npz"
    with own.open("wb") as stream:
        write_arrays(stream, apart)
    assert own.read_bytes() == archive.read_bytes()


@pytest.mark.parametrize("fails", [0, 7])
def test_a_piece_that_cannot_be_written_is_an_error(tmp_path, monkeypatch, fails):
    monkeypatch.setattr(array_files, "_PIECE", 100)
    write, calls = os.pwrite, []

    def pwrite(handle, piece, at):
        calls.append(at)
        if len(calls) > fails:
            raise OSError(errno.ENOSPC, "No space left on device")
        # a part of what is asked, as systems may
        return write(handle, piece[:60], at)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with (
        pytest.raises(OSError, match="No space"),
        (tmp_path / "own.npz").open("wb") as stream,
    ):
        write_arrays(stream, ARRAYS)


def test_parts_of_a_piece_are_written_one_after_the_other(
    archive, tmp_path, monkeypatch
):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda h, piece, at: write(h, piece[:60], at))
    own = tmp_path / "own.npz"
    with own.open("wb") as stream:
        write_arrays(stream, ARRAYS)
    assert own.read_bytes() == archive.read_bytes()


def test_arrays_are_those_that_numpy_reads(archive):
    found = read_arrays(archive)
    with np.load(archive) as stored:
        assert found.keys() == set(stored.files)
        for name, array in found.items():
            assert array.dtype == stored[name].dtype
            assert array.flags.f_contiguous == stored[name].flags.f_contiguous
            np.testing.assert_array_equal(array, stored[name])
            if array.size:  # a solver writes to what it has read
                array[...] = array.flat[0]


class Loop:
    """What the collector of objects finds, and switches threads while it does."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0)


@pytest.fixture
def switching_threads(monkeypatch):
    """Collect objects, and switch threads, wherever that may happen in a header."""
    begin = array_files._begin
    monkeypatch.setattr(array_files, "_begin", lambda *some: Loop() and begin(*some))
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(5)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_headers_are_read_by_several_threads_at_once(tmp_path, switching_threads):
    arrays: dict[str, Any] = {f"array-{at}": np.arange(3) for at in range(300)}
    np.savez(tmp_path / "many.npz", **arrays)
    for _ in range(10):
        assert read_arrays(tmp_path / "many.npz").keys() == arrays.keys()


def test_no_flipped_bit_becomes_a_number(archive):
    whole = archive.read_bytes()
    generator = np.random.default_rng(7)
    # the first member's headers, the directory, and some of all that is between
    places = [*range(0, 300, 3), *range(len(whole) - 500, len(whole), 5)]
    for at in [*places, *generator.integers(300, len(whole), 40)]:
        archive.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            found = read_arrays(archive)
        except (OSError, zipfile.BadZipFile):
            continue
        # dates and the like
        assert found.keys() == ARRAYS.keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, ARRAYS[name])


def test_a_file_that_was_cut_off_is_an_error(archive):
    whole = archive.read_bytes()
    for length in (0, 1, len(whole) // 2, len(whole) - 1):
        archive.write_bytes(whole[:length])
        with pytest.raises(zipfile.BadZipFile):
            read_arrays(archive)


def test_a_length_that_does_not_fit_is_an_error_before_memory_is_taken(archive):
    content = bytearray(archive.read_bytes())
    at = content.index(b"(3000, 10)")
    content[at : at + 10] = b"(9000000,)"
    archive.write_bytes(content)
    with pytest.raises(zipfile.BadZipFile, match="rows"):
        read_arrays(archive)


def test_compressed_and_pickled_arrays_are_refused(tmp_path):
    path = tmp_path / "packed.npz"
    np.savez_compressed(path, rows=ARRAYS["rows"])
    with pytest.raises(zipfile.BadZipFile, match="compressed"):
        read_arrays(path)
    np.savez(path, allow_pickle=True, things=np.array([{}], dtype=object))
    with pytest.raises(zipfile.BadZipFile, match="things"):
        read_arrays(path)


def test_offsets_beyond_four_gigabytes_are_read(archive, monkeypatch):
    # as in archives of more than 4 GB, whose headers are longer
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    np.savez(archive, **ARRAYS)
    assert struct.pack("<L", 0xFFFFFFFF) in archive.read_bytes()
    np.testing.assert_array_equal(read_arrays(archive)["rows"], ARRAYS["rows"])
