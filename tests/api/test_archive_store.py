"""The store: groups written apart, accepted by renaming, read from disk and HTTP."""

import functools
import http.server
import json
import pickle
import re
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from small_store import (
    N_MODE,
    TIMES,
    accept,
    create_campaign_store,
    group_values,
    sources,
    square,
    stations,
)

from afterslip import integrity
from afterslip.archive import (
    GreensStore,
    chunk_file,
    create_group_store,
    open_greens,
    set_attributes,
)
from afterslip.archive.verified import VerifiedStore
from afterslip.errors import ArchiveError, DamagedError, SpecError
from afterslip.units import YEAR
from afterslip_common.curve import spectral_weights


@pytest.fixture
def store(tmp_path: Path):
    """Return the path of a store whose two groups are accepted, and their values."""
    path = tmp_path / "greens.zarr"
    sizes = create_campaign_store(
        path,
        sources=sources(),
        surface=square(),
        stations=stations(),
        times=TIMES,
        until=10 * YEAR,
        n_mode=N_MODE,
        attributes={"spec": {"name": "x"}, "digest": "sha256:0"},
    )
    values = [group_values(4, seed=1), group_values(2, seed=2, n_mode=6)]
    for index, value in enumerate(values):
        files = create_group_store(tmp_path / f"g{index}.zarr", sizes, value)
        assert files == sorted(chunk_file(v, 0) for v in sizes.grouped)
        accept(tmp_path / f"g{index}.zarr", path, index, sizes)
    return path, values


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves byte ranges, as the service does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data, status = path.read_bytes(), 200
        total = len(data)
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        span = ""
        if wanted:
            first, last = wanted[1], wanted[2]
            start = int(first) if first else max(0, total - int(last))
            stop = min(int(last) + 1, total) if first and last else total
            data, status = data[start:stop], 206
            span = f"bytes {start}-{stop - 1}/{total}"
        self.send_response(status)
        if span:
            self.send_header("Content-Range", span)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path):
    handler = functools.partial(RangeHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def check_content(data: xr.Dataset, values: list[dict[str, np.ndarray]]) -> None:
    for index, value in enumerate(values):
        lanes = len(value["start_norm"])
        part = data.isel(source=slice(4 * index, 4 * index + lanes))
        for name, expected in value.items():
            found = part[name].values
            if "mode" in part[name].dims:
                modes = expected.shape[1]
                assert np.isnan(found[:, modes:]).all()
                found = found[:, :modes]
            np.testing.assert_array_equal(found, expected.astype(found.dtype))


def test_renamed_groups_read_back_what_was_written(store) -> None:
    path, values = store
    check_content(xr.open_zarr(path), values)


def test_store_opens_over_http(store, served: str) -> None:
    path, values = store
    url = f"{served}/{path.name}"
    check_content(xr.open_zarr(url), values)
    local, remote = GreensStore(path), GreensStore(url)
    found = remote.sample([10.0, 2e3], [0.0, 5e3], TIMES)
    xr.testing.assert_equal(found, local.sample([10.0, 2e3], [0.0, 5e3], TIMES))


def test_names_dimensions_and_types_are_those_of_the_contract(store) -> None:
    path, _ = store
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = open_greens(path)
    assert data["response"].dims == ("source", "mode", "node", "component")
    assert data["response"].dtype == np.float32
    assert data["recurrence"].dims == ("source", "mode", "pair")
    assert data["displacement"].dims == ("source", "time", "station", "component")
    assert data["displacement"].dtype == np.float64
    assert data["face_node_connectivity"].dims == ("face", "face_node")
    for name in ("fault", "component", "patch", "position", "area", "rigidity"):
        assert f"source_{name}" in data.coords
    np.testing.assert_allclose(data["time"], [0, 0.5, 10])
    assert data["time"].attrs["units"] == "yr"
    assert data["component"].values.tolist() == ["east", "north", "up"]
    assert data["station"].values.tolist() == ["Ōshika", "MYGI"]
    assert data["source_fault"].attrs["flag_meanings"] == "main splay"
    assert json.loads(data.attrs["spec"]) == {"name": "x"}
    assert "UGRID" in data.attrs["Conventions"]
    assert data["mesh"].attrs["face_node_connectivity"] == "face_node_connectivity"
    root = json.loads((path / "zarr.json").read_text())
    assert "response" in root["consolidated_metadata"]["metadata"]


def test_a_group_is_one_file_per_array(store) -> None:
    path, _ = store
    files = [f for f in (path / "response").rglob("*") if f.name != "zarr.json"]
    assert sorted(str(f.relative_to(path)) for f in files if f.is_file()) == [
        "response/c/0/0/0/0",
        "response/c/1/0/0/0",
    ]


def test_a_group_that_is_not_accepted_reads_as_nan(store) -> None:
    path, _ = store
    for name in sorted(integrity.read_root((path / "zarr.json").read_bytes()).grouped):
        chunk = path / name / "c" / "0"
        shutil.rmtree(chunk) if chunk.is_dir() else chunk.unlink()
    (path / integrity.group_key(0)).unlink()
    greens = GreensStore(path)
    assert np.isnan(greens.dataset["response"][:4].values).all()
    reader: Any = greens.reader
    assert reader.mode_count.tolist() == [0, 0, 0, 0, 6, 6]
    found = greens.evaluate(TIMES)
    assert np.isnan(found[:4]).all()
    assert np.isfinite(found[4:]).all()


def test_evaluation_is_the_sum_of_modes(store) -> None:
    path, values = store
    greens = GreensStore(path)
    found = greens.evaluate(TIMES, nodes=[3, 40], sources=[5, 1, 4])
    assert found.dims == ("source", "time", "node", "component")
    assert found.shape == (3, 3, 2, 3)
    for row, (group, lane) in enumerate([(1, 1), (0, 1), (1, 0)]):
        value = values[group]
        pairs, norm = value["recurrence"][lane], value["start_norm"][lane]
        weights = spectral_weights(pairs, norm, 0.0, TIMES)
        modes = value["response"][lane].astype(np.float32)[:, [3, 40]]
        expected = np.einsum("tm,mnc->tnc", weights, modes)
        np.testing.assert_allclose(found[row], expected, rtol=1e-6)
    np.testing.assert_array_equal(
        found.sel(source=1)[0], values[0]["response"][1, 0, [3, 40]].astype("f4")
    )


def test_sampling_at_nodes_is_evaluation(store) -> None:
    path, _ = store
    greens = GreensStore(path)
    nodes = square().nodes
    found = greens.sample(nodes[:, 0], nodes[:, 1], TIMES)
    assert found.dims == ("source", "time", "station", "component")
    np.testing.assert_allclose(found.values, greens.evaluate(TIMES).values, atol=1e-9)


def test_sampling_outside_names_the_station_and_late_times_are_refused(store) -> None:
    greens = GreensStore(store[0])
    with pytest.raises(SpecError, match="FAR"):
        greens.sample([0.0, 9e9], [0.0, 0.0], [0.0], names=["IN", "FAR"])
    with pytest.raises(SpecError, match="after the end of the curve"):
        greens.sample([0.0], [0.0], [11 * YEAR])
    with pytest.raises(SpecError, match="zero or more"):
        greens.sample([0.0], [0.0], [-1.0])


def test_stepping_interpolates_between_steps(tmp_path: Path) -> None:
    steps = np.array([0.0, 1.0, 2.0]) * YEAR
    sizes = create_campaign_store(
        tmp_path / "s.zarr",
        sources=sources(),
        surface=square(),
        stations=None,
        times=[0.0, YEAR],
        until=2 * YEAR,
        n_mode=3,
        integrator="stepping",
        step_times=steps,
    )
    values = group_values(4, seed=3, n_mode=3)
    names = {v.name for v in sizes.grouped}
    assert names.isdisjoint({"recurrence", "start_norm", "shift", "displacement"})
    values = {name: values[name] for name in names}
    create_group_store(tmp_path / "g.zarr", sizes, values)
    accept(tmp_path / "g.zarr", tmp_path / "s.zarr", 0, sizes)
    found = GreensStore(tmp_path / "s.zarr").evaluate([1.25 * YEAR], sources=[2])
    modes = values["response"][2].astype("f4").astype("f8")
    np.testing.assert_allclose(found[0, 0], 0.75 * modes[1] + 0.25 * modes[2])


def test_attributes_change_atomically_and_stay_readable(store) -> None:
    path, _ = store
    set_attributes(path, status="complete", versions={"afterslip": "0.1"})
    data = open_greens(path)
    assert data.attrs["status"] == "complete"
    assert json.loads(data.attrs["versions"]) == {"afterslip": "0.1"}
    assert not list(path.glob("*.new"))


def test_a_group_that_does_not_fit_is_refused_before_it_is_written(
    store, tmp_path: Path
) -> None:
    _, values = store
    sizes = create_campaign_store(
        tmp_path / "other.zarr",
        sources=sources(),
        surface=square(),
        stations=stations(),
        times=TIMES,
        until=1.0,
        n_mode=3,
    )
    with pytest.raises(ArchiveError, match="response has shape"):
        create_group_store(tmp_path / "x.zarr", sizes, values[0])
    less = {k: v for k, v in values[0].items() if k != "residual"}
    with pytest.raises(ArchiveError, match="needs other arrays: residual"):
        create_group_store(tmp_path / "y.zarr", sizes, less)
    with pytest.raises(ArchiveError, match="exists already"):
        create_group_store(tmp_path / "other.zarr", sizes, values[0])


def test_what_is_no_store_is_refused_in_our_words(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be opened"):
        open_greens(tmp_path / "nothing.zarr")


def test_a_folder_that_is_no_store_is_refused_before_zarr_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def get(_store: object, key: str, *_: object, **__: object) -> None:
        asked.append(key)

    monkeypatch.setattr(VerifiedStore, "get", get)
    with pytest.raises(ArchiveError, match=r"has no zarr\.json: it is not a store$"):
        open_greens(tmp_path)
    (tmp_path / "greens.zarr").mkdir()
    with pytest.raises(ArchiveError) as error:
        open_greens(tmp_path)
    assert f"(give {tmp_path / 'greens.zarr'})" in str(error.value)
    assert asked == []


def first_release(path: Path) -> None:
    """Make a store what 0.1.0 wrote: no checksums, version 1."""
    shutil.rmtree(path / integrity.FOLDER, ignore_errors=True)
    root = json.loads((path / "zarr.json").read_text())
    root["attributes"]["format_version"] = 1
    for name in ("checksum", "store_id"):
        del root["attributes"][name]
    (path / "zarr.json").write_text(json.dumps(root))


def test_a_store_of_the_first_release_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "greens.zarr"
    sizes = create_campaign_store(
        path,
        sources=sources(),
        surface=square(),
        stations=stations(),
        times=TIMES,
        until=10 * YEAR,
        n_mode=N_MODE,
        crc32c=False,
    )
    first_release(path)
    values = group_values(4, seed=1)
    create_group_store(tmp_path / "g0.zarr", sizes, values, crc32c=False)
    accept(tmp_path / "g0.zarr", path, 0, sizes)
    codecs = json.loads((path / "start_norm" / "zarr.json").read_text())["codecs"]
    assert [codec["name"] for codec in codecs] == ["bytes", "zstd"]
    check_content(open_greens(path), [values])
    reader: Any = GreensStore(path).reader
    assert reader.mode_count.tolist() == [4, 4, 4, 4, 0, 0]


@pytest.mark.parametrize("key", ["response/c/1/0/0/0", "shift/c/1", "node_x/c/0"])
@pytest.mark.parametrize("what", ["flip", "delete"])
@pytest.mark.parametrize("how", ["folder", "HTTP"])
def test_damage_is_an_error_that_names_the_file(
    store, served: str, key: str, what: str, how: str
) -> None:
    path, _ = store
    set_attributes(path, status="complete")
    content = bytearray((path / key).read_bytes())
    content[len(content) // 2] ^= 16
    (path / key).unlink()
    if what == "flip":
        (path / key).write_bytes(content)
    # this server compares nothing: over it the client has to notice
    where = path if how == "folder" else f"{served}/{path.name}"
    name = key.partition("/")[0]
    with pytest.raises(DamagedError) as error:
        # a part of the shard, which is not read whole
        open_greens(where)[name][-2:].load()
    assert error.value.file.startswith(name)
    assert "fsck --repair" in str(error.value)


def test_files_of_other_groups_are_read_beside_a_damaged_one(store) -> None:
    path, values = store
    (path / "response/c/0/0/0/0").write_bytes(b"")
    found = open_greens(path)["response"][4:, :6].values
    np.testing.assert_array_equal(found, values[1]["response"].astype("f4"))


def test_a_verified_store_survives_pickling(store) -> None:
    path, _ = store
    array = open_greens(path)["response"]
    again = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(again, array)


def test_curves_of_places_are_read_once_for_many_times(
    store, monkeypatch: pytest.MonkeyPatch
) -> None:
    greens = GreensStore(store[0])
    x, y = np.array([100.0, 400.0]), np.array([200.0, 300.0])
    every = [[0.0, YEAR], [3.5 * YEAR]]
    wanted = [greens.sample(x, y, times).values for times in every]
    once = greens.sampler(x, y)
    monkeypatch.setattr(type(greens.reader), "_modes", None)  # nothing is read again
    for times, values in zip(every, wanted, strict=True):
        np.testing.assert_array_equal(once(times), values)
