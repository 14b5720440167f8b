"""Uploaded files, stored by their content."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from afterslip_service.db import datasets
from afterslip_service.db.session import Connection
from afterslip_service.http.deps import (
    IdempotencyKey,
    PrincipalDep,
    ServiceDep,
    idempotent_by,
)
from afterslip_service.http.problems import responses
from afterslip_service.routes.responses import UploadResponse
from afterslip_workers import entry

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
    response_model=UploadResponse,
    responses=responses(413, 422, 503, 507),
    openapi_extra=RAW,
)
async def upload_file(
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Upload a file; the same content twice is one file."""
    size = 0
    with tempfile.NamedTemporaryFile(prefix="afterslip-upload-") as stream:
        async for chunk in request.stream():
            size += len(chunk)
            await run_in_threadpool(stream.write, chunk)
        stream.flush()
        if size == 0:
            raise HTTPException(422, "body: is empty; send the file's bytes")
        store, path = service.settings.store, Path(stream.name)
        ref = await run_in_threadpool(entry.keep_file, store, path)
    idempotent = idempotent_by(request, service, principal, idempotency_key, ref)

    def effect(connection: Connection) -> UploadResponse:
        datasets.record_file(connection, ref, size)
        return UploadResponse(ref=ref, size=size)

    return await run_in_threadpool(idempotent.answer, 201, effect)
