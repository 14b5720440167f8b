"""Copy a campaign from a server to a folder."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afterslip.client.errors import ApiError, NoServerError
from afterslip.client.transport import Transport

if TYPE_CHECKING:
    from afterslip.client.campaign import CampaignHandle
    from afterslip.client.inversion import Inversion

META = "zarr.json"


def fetch(
    campaign: CampaignHandle, transport: Transport, folder: Path, *, greens: bool
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
    kept = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    return kept.lstrip(".") or default


def _folder_name(inversion: Inversion) -> str:
    """Return the inversion's name, told apart from others by its id."""
    return f"{safe_name(inversion.name, 'inversion')}-{inversion.id[:8]}"


def copy_inversion(transport: Transport, inversion: Inversion, folder: Path) -> Path:
    """Write what the server holds of a result: the inversion's `save`.

    ``result.nc`` is written last, so that a folder that has it is whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = f"/v1/inversions/{inversion.id}"
    _write(folder / "report.html", transport.read(f"{path}/report"))
    _write(folder / "slip.csv", transport.read(f"{path}/slip"))
    _write(folder / "data_fit.csv", transport.read(f"{path}/fit"))
    for plot in transport.get(f"{path}/plots")["items"]:
        name = Path(str(plot["name"])).name
        _write(folder / f"{name}.png", transport.read(f"{path}/plots/{name}.png"))
    _write(folder / "result.nc", inversion.result_bytes())
    return folder


def copy_greens(transport: Transport, campaign: str, target: Path) -> Path:
    """Copy a store file by file; files that are there already are kept.

    The server lists nothing: the names follow from the store's metadata. The
    root's metadata are written last, so that a store that opens is whole.
    """
    base = f"/v1/campaigns/{campaign}/greens.zarr"
    raw = transport.read(f"{base}/{META}")
    root = json.loads(raw)
    members = root.get("consolidated_metadata", {}).get("metadata", {})
    for name, node in members.items():
        if not (target / name).resolve().is_relative_to(target.resolve()):
            raise NoServerError(f"the store names an array outside of itself: {name}")
        keys = list(chunk_keys(node)) if node.get("node_type") == "array" else []
        for key in [META, *keys]:
            _copy(transport, f"{base}/{name}/{key}", target / name / key)
    _write(target / META, raw)
    return target


def _copy(transport: Transport, source: str, target: Path) -> None:
    if target.exists():
        return
    try:
        content = transport.read(source)
    except ApiError as error:
        if error.status == 404:  # a chunk of fill values is not stored
            return
        raise
    _write(target, content)


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
