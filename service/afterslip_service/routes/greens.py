"""A campaign's ``greens.zarr``, file by file with byte ranges.

``xarray.open_zarr("http://…/v1/campaigns/<id>/greens.zarr")`` reads it.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse

from afterslip_service.db import campaigns
from afterslip_service.routes.deps import ServiceDep
from afterslip_service.routes.problems import responses

router = APIRouter(prefix="/v1/campaigns/{campaign}/greens.zarr", tags=["greens"])

_KEY = re.compile(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
METADATA = "zarr.json"


@router.head("/{key:path}", include_in_schema=False)
@router.get(
    "/{key:path}",
    response_class=FileResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}},
        206: {"description": "Partial Content"},
        416: {"description": "Range Not Satisfiable"},
        **responses(404, 422, 503),
    },
)
def read_greens(service: ServiceDep, campaign: str, key: str) -> FileResponse:
    """Read one file of the store, or a range of its bytes."""
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
    root = service.settings.store / "campaigns" / campaign / "greens.zarr"
    path = inside(root, key)
    if path is None:
        raise HTTPException(404, f"greens.zarr holds no {key}")
    media = "application/json" if path.name == METADATA else "application/octet-stream"
    # metadata changes when the store is closed; a chunk, once accepted, never does
    kept = "no-cache" if path.name == METADATA else "max-age=31536000, immutable"
    return FileResponse(path, media_type=media, headers={"Cache-Control": kept})


def inside(root: Path, key: str) -> Path | None:
    """Return the regular file of that key below ``root``, None if there is none.

    Neither ``..`` nor a symbolic link leads out of the folder.
    """
    if not _KEY.fullmatch(key) or ".." in key.split("/"):
        return None
    path = root / key
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) or not path.resolve().is_relative_to(root.resolve()):
            return None
    except OSError:
        return None
    return path
