"""Uploaded files, kept by their content."""

from __future__ import annotations

import hashlib
import os
import uuid
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from afterslip.files import content_ref
from afterslip_service.db import datasets
from afterslip_service.routes.deps import Service, ServiceDep
from afterslip_service.routes.problems import responses
from afterslip_service.routes.shapes import FileShape

router = APIRouter(prefix="/v1/files", tags=["files"])

RAW = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"}
            }
        },
    }
}


@router.post(
    "",
    status_code=201,
    response_model=FileShape,
    responses=responses(413, 422, 503),
    openapi_extra=RAW,
)
async def upload_file(
    request: Request,
    service: ServiceDep,
) -> JSONResponse:
    """Upload a file; the same content twice is one file."""
    folder = service.settings.store / "files"
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{uuid.uuid4().hex}.partial"
    digest, size = hashlib.sha256(), 0
    try:
        with partial.open("wb") as stream:
            async for chunk in request.stream():
                size += len(chunk)
                digest.update(chunk)
                await run_in_threadpool(stream.write, chunk)
            stream.flush()
            await run_in_threadpool(os.fsync, stream.fileno())
        if size == 0:
            raise HTTPException(422, "body: is empty; send the file's bytes")
        partial.replace(folder / digest.hexdigest())
    finally:
        partial.unlink(missing_ok=True)
    ref = f"sha256:{digest.hexdigest()}"
    await run_in_threadpool(_record, service, ref, size)
    return JSONResponse({"ref": ref, "size": size}, 201)


def _record(service: Service, ref: str, size: int) -> None:
    with service.database.write() as connection:
        datasets.record_file(connection, ref, size)


def keep(store: Path, content: bytes) -> str:
    """Write a content into the store and return its reference."""
    ref = content_ref(content)
    path = store / "files" / ref.removeprefix("sha256:")
    if path.is_file():
        return ref
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{uuid.uuid4().hex}.partial")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return ref
