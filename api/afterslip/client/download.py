"""Copy a campaign from a server to a folder."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from afterslip.client.errors import ApiError, NoServerError
from afterslip.client.handle import CampaignProtocol, InversionProtocol
from afterslip.client.transport import Transport
from afterslip.integrity import (
    FIXED,
    ROOT,
    Checksums,
    file_digests,
    group_key,
    group_of,
    write_checksums,
)


def fetch(
    campaign: CampaignProtocol, transport: Transport, folder: Path, *, greens: bool
) -> Path:
    """Write campaign.json, greens.zarr and the inversions: the campaign's `fetch`."""
    folder.mkdir(parents=True, exist_ok=True)
    campaign.refresh()
    whole = json.dumps(campaign.data, indent=2, ensure_ascii=False) + "\n"
    _write(folder / "campaign.json", whole.encode())
    if greens:
        copy_greens(transport, campaign.id, folder / "greens.zarr")
    for inversion in campaign.inversions():
        copy = folder / "inversions" / _folder_name(inversion)
        if inversion.state == "accepted" and not (copy / "result.nc").exists():
            copy_inversion(transport, inversion, copy)
    return folder


def safe_name(name: str, default: str) -> str:
    """Return a name that is one plain file name on every system."""
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    return plain.lstrip(".") or default


def _folder_name(inversion: InversionProtocol) -> str:
    """Return the inversion's name and the start of its id."""
    return f"{safe_name(inversion.name, 'inversion')}-{inversion.id[:8]}"


def copy_inversion(
    transport: Transport, inversion: InversionProtocol, folder: Path
) -> Path:
    """Write what the server holds of a result: the inversion's `save`.

    ``result.nc`` is written last, so that a folder that has it is whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = f"/v1/inversions/{inversion.id}"
    _write(folder / "report.html", transport.read(f"{path}/report"))
    _write(folder / "slip.csv", transport.read(f"{path}/slip"))
    _write(folder / "data_fit.csv", transport.read(f"{path}/fit"))
    try:
        _write(folder / "slip.geojson", transport.read(f"{path}/geojson"))
    except ApiError as error:
        if error.status != 404:  # a result of release 0.1.0 has none
            raise
    for plot in transport.get(f"{path}/plots")["items"]:
        name = Path(str(plot["name"])).name
        _write(folder / f"{name}.png", transport.read(f"{path}/plots/{name}.png"))
    _write(folder / "result.nc", inversion.result_bytes())
    return folder


def copy_greens(transport: Transport, campaign: str, target: Path) -> Path:
    """Copy a store file by file; each is compared with the store's checksums.

    Files that are there already and whole are not fetched again. The server lists
    nothing: the names follow from the checksums, in a store of release 0.1.0 from
    its metadata. The checksums of a group are written after its files and the
    root's metadata last, so that a store that opens is whole.

    Raises
    ------
    DamagedError
        What the server has is damaged, or a file of an accepted group is missing.
    """
    base = f"/v1/campaigns/{campaign}/greens.zarr"
    raw = transport.read(f"{base}/{ROOT}")

    def read(key: str) -> bytes | None:
        try:
            return transport.read(f"{base}/{key}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def exists(key: str) -> bool:
        return read(key) is not None

    known = Checksums(f"{transport.url}{base}", read, exists, campaign)
    if known.check_root(raw).sealed:
        _copy_sealed(known, read, target)
    else:
        _copy_plain(known, read, target, json.loads(raw))
    _write(target / ROOT, raw)
    return target


def _copy_sealed(
    known: Checksums, read: Callable[[str], bytes | None], target: Path
) -> None:
    parts: dict[int | None, dict[str, str]] = {None: known.fixed()}
    parts |= dict(known.groups().items())
    for group, files in parts.items():
        for key, digest in files.items():
            path = _inside(target, key)
            if file_digests.of_any(path) == digest:
                continue
            content = read(key)
            found = None if content is None else hashlib.sha256(content).hexdigest()
            if content is None or found != digest:
                what = "is missing" if content is None else "does not have its checksum"
                raise known.damaged(key, what, group)
            _write(path, content)
        document = FIXED if group is None else group_key(group)
        content = write_checksums(known.root.store, files, group)
        _write(target / document, content)


def _copy_plain(
    known: Checksums,
    read: Callable[[str], bytes | None],
    target: Path,
    root: dict[str, Any],
) -> None:
    """Copy a store without checksums; files that are there already are left."""
    members = root.get("consolidated_metadata", {}).get("metadata", {})
    for name, node in members.items():
        keys = list(chunk_keys(node)) if node.get("node_type") == "array" else []
        for key in [ROOT, *keys]:
            path = _inside(target, f"{name}/{key}")
            if not path.exists():
                content = read(f"{name}/{key}")
                group = group_of(f"{name}/{key}", known.root.grouped)
                if content is not None:
                    _write(path, content)
                elif group is not None and known.root.status == "complete":
                    raise known.damaged(f"{name}/{key}", "is missing", group)
                # else a chunk of fill values, or a group that is not solved yet


def _inside(target: Path, key: str) -> Path:
    path = target / key
    if not path.resolve().is_relative_to(target.resolve()):
        raise NoServerError(f"the store names a file outside of itself: {key}")
    return path


def chunk_keys(node: dict[str, Any]) -> Iterator[str]:
    """Yield the keys of an array's chunks (Zarr v3; a shard is a chunk here)."""
    shape = node["shape"]
    grid = node["chunk_grid"]["configuration"]["chunk_shape"]
    encoding = node["chunk_key_encoding"]
    separator = encoding.get("configuration", {}).get("separator", "/")
    prefix = "c" if encoding["name"] == "default" else ""
    counts = [-(-n // c) for n, c in zip(shape, grid, strict=True)]
    for place in itertools.product(*map(range, counts)):
        parts = ([prefix] if prefix else []) + [str(i) for i in place]
        yield separator.join(parts) if parts else "0"


def _write(path: Path, content: bytes) -> None:
    """Write a file that is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)  # noqa: PTH105 atomic on every system
