"""Checksums of a store: written with it, bound to it, and never half believed."""

import asyncio
import json
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zarr
from small_store import TIMES, create_campaign_store, sources, square, stations
from zarr.core.buffer import Buffer, default_buffer_prototype

from afterslip import integrity
from afterslip.archive import set_attributes
from afterslip.archive.verified import VerifiedStore
from afterslip.errors import ArchiveError, DamagedError
from afterslip.units import YEAR


def create(path: Path, **more):
    return create_campaign_store(
        path,
        sources=sources(),
        surface=square(),
        stations=stations(),
        times=TIMES,
        until=10 * YEAR,
        n_mode=4,
        store_id="c1",
        **more,
    )


def checksums_of(path: Path, store: str | None = None) -> integrity.Checksums:
    def read(key: str) -> bytes | None:
        file = path / key
        return file.read_bytes() if file.is_file() else None

    return integrity.Checksums(
        path.name, read, lambda key: (path / key).is_file(), store
    )


def test_grouped_arrays_are_those_of_the_layout(tmp_path: Path) -> None:
    layout = create(tmp_path / "a.zarr")
    root = integrity.read_root((tmp_path / "a.zarr" / integrity.ROOT).read_bytes())
    assert root.grouped == {variable.name for variable in layout.grouped}
    assert root.groups == 2


def test_every_array_of_a_new_store_ends_in_crc32c(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr")
    for name, array in zarr.open_group(tmp_path / "a.zarr", mode="r").arrays():
        last: Any = array.compressors[-1]
        assert last.to_dict()["name"] == "crc32c", name


def test_a_new_store_has_a_checksum_of_every_file_but_the_root(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    known = checksums_of(path, "c1").fixed()
    there = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    assert there - set(known) == {integrity.ROOT, integrity.FIXED}
    assert all(integrity.file_digests.of(path / key) == known[key] for key in known)


def test_zarr_lists_a_store_with_checksums_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    (path / "checksums" / "0").mkdir()
    content = integrity.write_checksums("c1", {"response/c/0/0/0/0": "0" * 64}, 0)
    (path / integrity.group_key(0)).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group = zarr.open_group(path, mode="r", use_consolidated=False)
        checksums: Any = group["checksums"]
        assert list(checksums.groups())
        assert "response" in dict(group.arrays())


def test_attributes_that_change_renew_the_checksum_of_the_root(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    set_attributes(path, status="complete")
    root = checksums_of(path).root
    assert (root.version, root.store, root.status) == (2, "c1", "complete")
    assert root.groups == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "bomplete"}, "does not have the content of its checksum"),
        ({"spec": "{}"}, "does not have the content of its checksum"),
        ({"format_version": 1}, "does not have the content of its checksum"),
        ({"checksum": None, "store_id": None}, "format_version 2 and no valid"),
    ],
)
def test_a_root_that_was_changed_is_refused(tmp_path: Path, change, message) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"].update(change)
    root["attributes"] = {k: v for k, v in root["attributes"].items() if v is not None}
    (path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(DamagedError, match=message) as error:
        _ = checksums_of(path).root
    assert error.value.file == "zarr.json"
    assert "fsck --repair" in str(error.value)


def test_a_root_of_a_later_release_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["format_version"] = 3
    (path / "zarr.json").write_text(json.dumps(integrity.signed(root)))
    with pytest.raises(ArchiveError, match="newer afterslip"):
        _ = checksums_of(path).root


def test_the_root_of_another_store_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr")
    with pytest.raises(DamagedError, match="belongs to the store 'c1'"):
        _ = checksums_of(tmp_path / "a.zarr", "c2").root


@pytest.mark.parametrize(
    ("store", "group", "message"),
    [
        ("c2", 0, "belongs to the store 'c2'"),
        ("c1", 1, "belongs to group 1"),
        ("c1", None, "belongs to group None"),
    ],
)
def test_checksums_of_another_group_or_store_are_refused(store, group, message) -> None:
    content = integrity.write_checksums(store, {"shift/c/0": "0" * 64}, group)
    with pytest.raises(ValueError, match=message):
        integrity.read_checksums(content, "c1", 0)


def test_every_flipped_bit_of_a_document_is_noticed_or_harmless() -> None:
    files = {"shift/c/0": "0" * 64, "response/c/0/0/0/0": "1" * 64}
    content = integrity.write_checksums("c1", files, 0)
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            found = integrity.read_checksums(bytes(changed), "c1", 0)
        except ValueError:
            continue
        assert found == files


def test_groups_are_accepted_when_their_checksums_are_there(tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path)
    key = "shift/c/0"
    assert checksums_of(path).expected(key) is None, "not solved yet"
    (path / "shift" / "c").mkdir()
    (path / key).write_bytes(b"x")
    with pytest.raises(DamagedError, match="accepted now, or is damaged"):
        checksums_of(path).expected(key)
    (path / "checksums" / "0").mkdir()
    document = path / integrity.group_key(0)
    document.write_bytes(integrity.write_checksums("c1", {key: "0" * 64}, 0))
    known = checksums_of(path)
    assert known.expected(key) == "0" * 64
    known.require(key, "0" * 64)
    with pytest.raises(DamagedError, match=r"shift/c/0 of group 0 is missing"):
        known.require(key, None)
    with pytest.raises(DamagedError, match="does not have its checksum"):
        known.require(key, "1" * 64)
    with pytest.raises(DamagedError, match="has no checksum"):
        known.expected("residual/c/0")
    set_attributes(path, status="complete")
    with pytest.raises(DamagedError, match=r"checksums/1/zarr.json of group 1"):
        checksums_of(path).expected("shift/c/1")


def test_digests_of_files_follow_their_changes(tmp_path: Path) -> None:
    digests = integrity.FileDigests()
    path = tmp_path / "x"
    path.write_bytes(b"one")
    first = digests.of(path)
    # as fast as a file system's clock cannot tell
    path.write_bytes(b"two")
    assert digests.of(path) != first
    os.utime(path, (1, 1))
    assert digests.of(path) != first


def test_many_files_read_at_once_never_wait_for_each_other(tmp_path: Path) -> None:
    """The loop reads files in few threads, which no check may keep waiting in."""
    create(tmp_path / "g")
    store = VerifiedStore.of_folder(tmp_path / "g")
    keys = list(checksums_of(tmp_path / "g").fixed())

    async def read_all() -> list[Buffer | None]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        prototype = default_buffer_prototype()
        reads = [store.get(key, prototype) for key in keys]
        return await asyncio.wait_for(asyncio.gather(*reads), 20)

    found = asyncio.run(read_all())
    assert [item.to_bytes() for item in found if item is not None] == [
        (tmp_path / "g" / key).read_bytes() for key in keys
    ]


def test_a_group_that_the_store_never_had_is_absent_not_damaged(
    tmp_path: Path,
) -> None:
    create(tmp_path / "g")
    set_attributes(tmp_path / "g", status="complete")
    sums = checksums_of(tmp_path / "g")
    assert sums.expected("response/c/9/0/0/0") is None
    with pytest.raises(DamagedError, match="missing"):
        sums.expected("response/c/1/0/0/0")


@pytest.mark.parametrize(
    "key",
    [
        "response/c/0/1/0/0",
        "response/c/0/0/0",
        "response/c/0/0/0/0/0",
        "response/c/0/00/0/0",
        f"response/c/0/{'9' * 5000}/0/0",
        f"response/c/{'9' * 5000}/0/0/0",
    ],
)
def test_a_key_that_is_no_chunk_of_an_accepted_group_is_absent(
    tmp_path: Path, key
) -> None:
    create(tmp_path / "g")
    document = tmp_path / "g" / integrity.group_key(0)
    document.parent.mkdir()
    whole = {"response/c/0/0/0/0": "0" * 64}
    document.write_bytes(integrity.write_checksums("c1", whole, 0))
    sums = checksums_of(tmp_path / "g")
    assert sums.expected("response/c/0/0/0/0") == "0" * 64
    assert sums.expected(key) is None


def test_an_array_that_the_store_never_had_is_absent_not_damaged(tmp_path) -> None:
    path = tmp_path / "g"
    create_campaign_store(
        path,
        sources=sources(),
        surface=square(),
        stations=None,
        times=TIMES,
        until=10 * YEAR,
        n_mode=4,
        store_id="c1",
    )
    document = path / integrity.group_key(0)
    document.parent.mkdir()
    document.write_bytes(integrity.write_checksums("c1", {"shift/c/0": "0" * 64}, 0))
    assert checksums_of(path).expected("displacement/c/0/0/0/0") is None
