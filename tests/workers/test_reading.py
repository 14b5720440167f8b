"""Green's functions are compared with their checksums in a folder and in a bucket."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "api"))

import buckets
from small_store import (
    create_whole_store,
)

from afterslip.archive import (
    GreensStore,
    open_greens,
    set_attributes,
)
from afterslip.errors import DamagedError
from afterslip_workers import entry
from afterslip_workers.store import paths, reading

ROOT = paths.greens("c1")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A complete store of two groups, and what is in it."""
    path = tmp_path_factory.mktemp("made") / "greens.zarr"
    create_whole_store(path, n_mode=4, store_id="c1")
    set_attributes(path, status="complete")
    with open_greens(path) as data:
        return path, data.load()


@pytest.fixture(params=["folder", "bucket"])
def backend(request, made, tmp_path, monkeypatch):
    if request.param == "folder":
        found = entry.open_store(tmp_path)
        found.prepare()
        server = None
    else:
        server = buckets.server(monkeypatch)
        found = entry.open_store(server.__enter__().bucket())
    path, _ = made
    for file in path.rglob("*"):
        if file.is_file():
            found.upload(file, f"{ROOT}/{file.relative_to(path).as_posix()}")
    yield found
    if server is not None:
        server.__exit__(None, None, None)


def test_what_is_whole_is_read_bit_for_bit(backend, made):
    data = open_greens(reading.greens(backend, "c1")).load()
    assert data.identical(made[1])
    for key in backend.keys(ROOT):
        name = key.removeprefix(f"{ROOT}/")
        assert reading.greens_digest(backend, "c1", name) == backend.sha256(key)


@pytest.mark.parametrize("key", ["response/c/1/0/0/0", "shift/c/1", "node_y/c/0"])
@pytest.mark.parametrize("gone", [False, True])
def test_damage_is_found_before_any_of_the_file_is_used(backend, key, gone):
    name = key.partition("/")[0]
    assert np.isfinite(open_greens(reading.greens(backend, "c1"))[name][-1]).any()
    assert reading.greens_digest(backend, "c1", key)
    content = bytearray(backend.read(f"{ROOT}/{key}"))
    content[7] ^= 1
    backend.remove(f"{ROOT}/{key}")
    if not gone:
        backend.write(f"{ROOT}/{key}", bytes(content))
    # of a shard only the last lane is wanted, and the flipped bit is of the first
    with pytest.raises(DamagedError, match=key):
        open_greens(reading.greens(backend, "c1"))[name][-1].load()
    with pytest.raises(DamagedError, match=key):
        reading.greens_digest(backend, "c1", key)


def test_the_store_of_another_campaign_is_refused(backend):
    for key in backend.keys(ROOT):
        backend.write(key.replace("/c1/", "/c2/"), backend.read(key))
    with pytest.raises(DamagedError, match="belongs to the store 'c1'"):
        GreensStore(reading.greens(backend, "c2"))


def test_files_that_the_checksums_do_not_name_are_not_served(backend):
    backend.write(f"{ROOT}/other/c/0", b"x")
    assert reading.greens_digest(backend, "c1", "other/c/0") is None


def test_a_root_or_checksums_that_are_gone_are_damage(backend):
    backend.remove(f"{ROOT}/checksums/1/zarr.json")
    with pytest.raises(DamagedError, match="of group 1 is missing"):
        reading.greens_digest(backend, "c1", "checksums/1/zarr.json")
    with pytest.raises(DamagedError, match="of group 1 is missing"):
        open_greens(reading.greens(backend, "c1"))["shift"].load()
    assert reading.greens_digest(backend, "c1", "checksums/2/zarr.json") is None
    backend.remove(f"{ROOT}/zarr.json")
    with pytest.raises(DamagedError, match=r"zarr.json is missing"):
        reading.greens_digest(backend, "c1", "shift/c/0")
    with pytest.raises(DamagedError, match=r"zarr.json is missing"):
        GreensStore(reading.greens(backend, "c1"))


@pytest.mark.parametrize("other", ["shift/zarr.json", "checksums/zarr.json", "plain"])
def test_a_root_without_a_checksum_does_not_switch_the_checks_off(backend, other):
    plain = b'{"zarr_format": 3, "node_type": "group", "attributes": {}}'
    content = plain if other == "plain" else backend.read(f"{ROOT}/{other}")
    backend.write(f"{ROOT}/zarr.json", content)
    with pytest.raises(DamagedError, match=r"zarr.json"):
        GreensStore(reading.greens(backend, "c1"))
    for key in ("zarr.json", "shift/c/0"):
        with pytest.raises(DamagedError, match=r"zarr.json"):
            reading.greens_digest(backend, "c1", key)
