"""Errors as RFC 9457 problem documents, whatever raised them."""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from afterslip.cli.wording import plain_words
from afterslip.errors import DamagedError, SpecError
from afterslip.integrity import DAMAGED, PROBLEM
from afterslip.schemas.validation import MOST
from afterslip_service.db.session import DBAPIError, PoolTimeoutError
from afterslip_service.errors import (
    ConflictError,
    ForbiddenError,
    KeyReusedError,
    MissingError,
    ServiceError,
)
from afterslip_workers import entry

MEDIA = "application/problem+json"
BINARY = {"type": "string", "format": "binary"}
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# a client that has left is answered nothing; nginx's number for it
LEFT = 499
# on every answer, also of the middleware
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
log = structlog.get_logger()


class Finding(BaseModel):
    """One thing that is wrong with a request."""

    path: str = Field(description="where, e.g. model.layers[1].vs")
    value: Any = Field(None, description="what stands there")
    message: str = Field(description="what is wrong with it")
    hint: str = Field("", description="what to write instead")
    mend: str = Field(
        "", deprecated=True, description="the hint under its old key, until 0.3"
    )


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[Finding] = []


def problem(
    request: Request,
    status: int,
    detail: str,
    *,
    errors: list[dict[str, Any]] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Return a problem document."""
    content = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.url.path,
        "errors": errors or [],
    }
    return JSONResponse(content, status, headers, media_type=MEDIA)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problem answers of a route, for OpenAPI."""
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "model": Problem,
            "content": {MEDIA: {}},
        }
        for status in statuses
    }


def file_of(media: str, **schema: str) -> dict[int | str, dict[str, Any]]:
    """Return the answer of a route that sends a file, for OpenAPI; bytes by default."""
    return {200: {"content": {media: {"schema": schema or BINARY}}}}


def install(app: FastAPI) -> None:
    """Answer every error of an app with a problem document."""
    app.add_exception_handler(SpecError, _spec)
    app.add_exception_handler(DamagedError, _damaged)
    app.add_exception_handler(RequestValidationError, _request)
    app.add_exception_handler(ServiceError, _service)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(PoolTimeoutError, _database)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(OSError, _system)
    app.add_exception_handler(Exception, _unforeseen)


def _spec(request: Request, error: Exception) -> JSONResponse:
    errors = error.as_dicts() if isinstance(error, SpecError) else []
    return problem(request, 422, str(error), errors=errors)


def _request(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    errors = [_finding(detail) for detail in found[:MOST]]
    lines = "; ".join(f"{item['path']}: {item['message']}" for item in errors)
    if any(detail["type"] == "json_invalid" for detail in found):
        return problem(request, 400, f"the body is not JSON: {lines}", errors=errors)
    return problem(request, 422, lines or "the request is not valid", errors=errors)


def _finding(detail: dict[str, Any]) -> dict[str, Any]:
    loc = [str(part) for part in detail["loc"]]
    where = ".".join(loc[1:] if loc[:1] == ["body"] and loc[1:] else loc)
    value = detail.get("input")
    plain = isinstance(value, str | int | bool) and len(str(value)) <= 80
    return {
        "path": where,
        "value": value if plain else None,
        "message": plain_words(detail["msg"]),
        "hint": "",
        "mend": "",
    }


def _service(request: Request, error: Exception) -> JSONResponse:
    status = 400
    if isinstance(error, MissingError):
        status = 404
    elif isinstance(error, ForbiddenError):
        status = 403
    elif isinstance(error, ConflictError):
        status = 409
    elif isinstance(error, KeyReusedError):
        status = 422
    return problem(request, status, str(error))


def _http(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return _unforeseen(request, error)
    detail = str(error.detail)
    if error.status_code == 404 and detail == "Not Found":
        detail = f"there is nothing at {request.url.path}"
    if error.status_code == 405:
        detail = f"{request.url.path} does not answer to {request.method}"
    headers = dict(error.headers or {})
    return problem(request, error.status_code, detail, headers=headers)


def _damaged(request: Request, error: Exception) -> JSONResponse:
    log.error("the store is damaged", error=str(error), path=request.url.path)
    # clients that see no body, as libraries of Zarr, know the reason by its header
    headers = {PROBLEM: DAMAGED, "Cache-Control": "no-store"}
    return problem(request, 503, str(error), headers=headers)


def _database(request: Request, error: Exception) -> JSONResponse:
    log.error("the database does not answer", error=str(error), path=request.url.path)
    detail = "the database does not answer; nothing was changed, try again"
    return problem(request, 503, detail, headers={"Retry-After": "5"})


def _left(_request: Request, _error: Exception) -> Response:
    """Answer nobody; the number is for the log."""
    return Response(status_code=LEFT)


def _system(request: Request, error: Exception) -> JSONResponse:
    """Tell a store that is full or away from an unexpected error."""
    number = error.errno if isinstance(error, OSError) else None
    if number not in FULL:
        if entry.reachable(request.app.state.service.settings.store):
            return _unforeseen(request, error)
        log.error("the store cannot be reached", error=str(error))
        detail = "the store cannot be reached; nothing was changed, try again"
        return problem(request, 503, detail, headers={"Retry-After": "5"})
    log.error("no space left", error=str(error), path=request.url.path)
    detail = (
        "no space is left where the service stores files: nothing was stored; an "
        "operator must free some"
    )
    return problem(request, 507, detail)


def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    log.error("unforeseen error", path=request.url.path, exc_info=error)
    detail = "an error that we did not foresee; the server's log has the particulars"
    # this answer is given outside of all that would add its headers
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    return problem(request, 500, detail, headers=headers)
