"""Signing in on the page: a token is exchanged for a cookie."""

from __future__ import annotations

from datetime import datetime

import structlog
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from afterslip_service.db import tokens
from afterslip_service.engine.access import EVERYBODY, Principal, Role
from afterslip_service.engine.buckets import Level
from afterslip_service.errors import ConflictError
from afterslip_service.http.access import (
    COOKIE,
    REALM,
    SECURE_COOKIE,
    WRONG,
    cookie_of,
    csrf_of,
)
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import ServiceDep
from afterslip_service.http.problems import responses

router = APIRouter(prefix="/v1/session", tags=["session"], route_class=JsonRoute)
log = structlog.get_logger()


class SignIn(BaseModel):
    """A token to sign in with."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(min_length=1, max_length=200)


class SessionResponse(BaseModel):
    """Who asks."""

    auth: bool = Field(description="whether the service asks for tokens")
    user: str | None = Field(description="null for somebody who has not signed in")
    role: Role | None
    expires_at: datetime | None
    campaign: str | None = Field(
        None, description="the only one that may be read; null: all"
    )
    csrf: str | None = Field(
        None, description="to be sent as X-CSRF-Token with every change by cookie"
    )


def _shown(principal: Principal | None, cookie: str | None) -> SessionResponse:
    if principal is None:
        return SessionResponse(auth=True, user=None, role=None, expires_at=None)
    return SessionResponse(
        auth=principal is not EVERYBODY,
        user=principal.user,
        role=principal.role,
        expires_at=principal.expires_at,
        campaign=principal.campaign,
        csrf=csrf_of(cookie) if cookie and principal.session else None,
    )


def _cookie_name(request: Request) -> str:
    return SECURE_COOKIE if request.url.scheme == "https" else COOKIE


@router.get("")
def show_session(request: Request, response: Response) -> SessionResponse:
    """Say who asks."""
    response.headers["Cache-Control"] = "no-store"
    return _shown(request.state.principal, cookie_of(dict(request.headers)))


@router.post("", responses=responses(401, 409, 422))
def sign_in(
    service: ServiceDep, request: Request, response: Response, asked: SignIn
) -> SessionResponse:
    """Sign in with a token; the answer sets the cookie of the session."""
    if not service.settings.auth:
        raise ConflictError("authentication is off: there is nothing to sign in to")
    seconds = 3600.0 * service.settings.session_hours
    with service.database.write() as connection:
        token = tokens.of_secret(connection, asked.token.strip())
        if token is not None:
            cookie, end = tokens.begin_session(connection, token, seconds)
    if token is None:
        address = request.client.host if request.client else ""
        level: Level = request.state.turn_of_unauthenticated(address)
        if not level.allowed:
            wait = str(max(1, level.wait))
            detail = f"too many tries: come back in {wait} s"
            raise HTTPException(429, detail, {"Retry-After": wait})
        raise HTTPException(401, WRONG, {"WWW-Authenticate": REALM})
    response.set_cookie(
        _cookie_name(request),
        cookie,
        expires=end,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    response.headers["Cache-Control"] = "no-store"
    log.info("signed in", user=token.user, token=token.id)
    who = Principal(
        token.user, token.role, token.id, end, session=True, campaign=token.campaign
    )
    return _shown(who, cookie)


@router.delete("", status_code=204)
def sign_out(service: ServiceDep, request: Request, response: Response) -> None:
    """Sign out; a second time changes nothing."""
    cookie = cookie_of(dict(request.headers))
    if cookie is not None and service.settings.auth:
        with service.database.write() as connection:
            tokens.end_session(connection, cookie)
    for name in (COOKIE, SECURE_COOKIE):
        response.delete_cookie(
            name,
            path="/",
            secure=name == SECURE_COOKIE,
            httponly=True,
            samesite="strict",
        )
