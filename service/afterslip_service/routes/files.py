"""Uploaded files, stored by their content."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
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

# s without a byte after which an upload is given up
IDLE_S = 60.0
# bytes/s on average, after the first IDLE_S
LEAST_RATE = 10_000.0

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
    responses=responses(413, 415, 422, 503, 507),
    openapi_extra=RAW,
)
async def upload_file(
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Upload a file; the same content twice is one file."""
    _refuse_forms(request.headers.get("content-type", ""))
    size = 0
    with tempfile.NamedTemporaryFile(prefix="afterslip-upload-") as stream:
        async for chunk in _arriving(request):
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


def _refuse_forms(kind: str) -> None:
    """Refuse an envelope with other things around the file: its digest is no file's."""
    if kind.partition(";")[0].strip().lower() == "multipart/form-data":
        raise HTTPException(
            415,
            "Content-Type: multipart/form-data is a form, and the body must be the "
            "file itself: curl --data-binary @FILE in place of curl -F",
        )


async def _arriving(request: Request) -> AsyncIterator[bytes]:
    """Yield a body as it comes; 408 where it stops, or comes too slowly."""
    began, size = time.monotonic(), 0
    chunks = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(IDLE_S):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            detail = f"the file stopped arriving for {IDLE_S:g} s: send it again"
            raise HTTPException(408, detail) from None
        size += len(chunk)
        if time.monotonic() - began > IDLE_S + size / LEAST_RATE:
            detail = (
                f"the file arrived at less than {LEAST_RATE / 1e3:g} kB/s: "
                "send it again over a faster connection"
            )
            raise HTTPException(408, detail)
        yield chunk
