"""A campaign's ``greens.zarr``, file by file with byte ranges.

``xarray.open_zarr("http://…/v1/campaigns/<id>/greens.zarr")`` reads it. Each file is
compared with its checksum before its first byte is sent, and again when it changes.
"""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, Response

from afterslip_service.db import campaigns
from afterslip_service.http.deps import ServiceDep
from afterslip_service.http.problems import BINARY, responses
from afterslip_service.routes.store_files import respond
from afterslip_workers import entry

router = APIRouter(prefix="/v1/campaigns/{campaign}/greens.zarr", tags=["greens"])

METADATA = "zarr.json"
CONTENT = {
    "application/octet-stream": {"schema": BINARY},
    "application/json": {"schema": {"type": "object"}},
}


@router.head("/{key:path}", include_in_schema=False)
@router.get(
    "/{key:path}",
    response_class=FileResponse,
    responses={
        200: {"content": CONTENT},
        206: {"description": "Partial Content", "content": CONTENT},
        416: {"description": "Range Not Satisfiable"},
        **responses(404, 422, 503),
    },
)
def read_greens(
    service: ServiceDep, request: Request, campaign: str, key: str
) -> Response:
    """Read one file of the store, or a range of its bytes."""
    with service.database.read() as connection:
        campaigns.get(connection, campaign)
    described = key.rpartition("/")[2] == METADATA
    media = "application/json" if described else "application/octet-stream"
    # metadata changes when the store is closed; a chunk, once accepted, never does
    caching = (
        "private, no-cache" if described else "private, max-age=31536000, immutable"
    )
    folder = f"campaigns/{campaign}/greens.zarr"
    found = respond(
        service,
        request,
        folder,
        key,
        digest=lambda: entry.greens_digest(service.settings.store, campaign, key),
        media=media,
        headers={"Cache-Control": caching},
    )
    if found is None:
        raise HTTPException(404, f"greens.zarr holds no {key}")
    return found
