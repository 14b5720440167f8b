"""Uploads that were damaged come back when they are uploaded again."""

from __future__ import annotations

import pytest

from afterslip_workers import entry


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
