"""Uploads that were damaged come back when they are uploaded again."""

from __future__ import annotations

from pathlib import Path

import pytest

from afterslip.errors import SpecError
from afterslip_workers import entry
from afterslip_workers.store.local import LocalBackend
from afterslip_workers.store.uploads import BucketFiles


@pytest.fixture
def store(tmp_path):
    entry.prepare(tmp_path / "store")
    return tmp_path / "store"


def test_damaged_upload_is_replaced_when_it_is_uploaded_again(store, tmp_path):
    reference = entry.keep_content(store, b"observations")
    path = store / "files" / reference.removeprefix("sha256:")
    path.write_bytes(b"observationz")
    assert [f.kind for f in entry.check_store(store).findings] == ["upload"]
    assert entry.keep_content(store, b"observations") == reference
    assert path.read_bytes() == b"observations"
    path.write_bytes(b"")
    (tmp_path / "again.csv").write_bytes(b"observations")
    assert entry.keep_file(store, tmp_path / "again.csv") == reference
    assert entry.check_store(store).findings == []


@pytest.mark.parametrize("kind", ["folder", "bucket"])
def test_upload_with_a_flipped_bit_is_not_read_as_numbers(store, kind):
    table = b"station,x_km\nA,1.0\n"
    reference = entry.keep_content(store, table)
    files = entry.files_of(store)
    if kind == "bucket":
        files = BucketFiles(LocalBackend(store))
    assert files.read(reference) == table
    path = store / "files" / reference.removeprefix("sha256:")
    # "1.0" becomes "3.0"
    path.write_bytes(table.replace(b"1.0", bytes([ord("1") ^ 2]) + b".0"))
    with pytest.raises(SpecError, match=r"another content.*upload it again") as caught:
        files.read(reference)
    assert reference[:20] in str(caught.value)
    entry.keep_content(store, table)
    assert files.read(reference) == table


def test_an_upload_that_is_whole_is_not_written_again(store, tmp_path):
    path = tmp_path / "given"
    path.write_bytes(b"observations")
    ref = entry.keep_content(store, b"observations")
    stored = Path(store) / "files" / ref.removeprefix("sha256:")
    before = stored.stat().st_ino
    assert entry.keep_content(store, b"observations") == ref
    assert entry.keep_file(store, path) == ref
    assert stored.stat().st_ino == before
    assert stored.read_bytes() == b"observations"
