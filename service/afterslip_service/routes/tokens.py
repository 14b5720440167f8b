"""Tokens: who may use the service, and how far."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Self

import structlog
from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from afterslip_service import clock
from afterslip_service.db import campaigns, tokens
from afterslip_service.db.session import Connection
from afterslip_service.db.tokens import Token
from afterslip_service.engine.access import Role
from afterslip_service.errors import MissingError
from afterslip_service.http.body import JsonRoute
from afterslip_service.http.deps import (
    CursorDep,
    IdempotentDep,
    Limit,
    PrincipalDep,
    ServiceDep,
    next_cursor,
)
from afterslip_service.http.problems import responses

router = APIRouter(prefix="/v1/tokens", tags=["tokens"], route_class=JsonRoute)
log = structlog.get_logger()

USER = r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}$"
DAYS = 90


class TokenRequest(BaseModel):
    """A token that is asked for."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        min_length=1, max_length=200, description="what it is for", pattern=r"\S"
    )
    user: str = Field(pattern=USER, description="whom campaigns made with it belong to")
    role: Role = Field(description="what it allows")
    days: int | None = Field(
        DAYS, ge=1, le=3660, description="until it expires; null: never"
    )
    campaign: str | None = Field(
        None,
        max_length=40,
        description="a link: reads this campaign and nothing else, and expires",
    )

    @model_validator(mode="after")
    def _harmless(self) -> Self:
        """Refuse links that change something, or that stay for ever."""
        if self.campaign is not None:
            if self.role is not Role.VIEWER:
                raise ValueError("role must be viewer where a campaign is given")
            if self.days is None:
                raise ValueError("days must be given where a campaign is")
        return self


class TokenResponse(BaseModel):
    """A token, without its secret, which nobody knows any more."""

    id: str
    name: str
    user: str
    role: Role
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None = Field(description="to the minute")
    campaign: str | None = Field(description="the only one that it reads; null: all")

    @classmethod
    def of(cls, token: Token) -> TokenResponse:
        """Return a token."""
        return cls(**{name: getattr(token, name) for name in cls.model_fields})


class NewTokenResponse(TokenResponse):
    """A token that was just made."""

    token: str | None = Field(
        None,
        description="the secret, shown this once; null when the request is repeated",
    )


class TokenPage(BaseModel):
    """A page of tokens, newest first."""

    items: list[TokenResponse]
    next: str | None


def expiry(days: int | None) -> datetime | None:
    """Return when a token of so many days expires."""
    return None if days is None else clock.now() + timedelta(days=days)


@router.post(
    "",
    status_code=201,
    response_model=NewTokenResponse,
    responses=responses(404, 422),
    openapi_extra={"x-role": Role.ADMIN.value},
)
def create_token(
    idempotent: IdempotentDep, principal: PrincipalDep, request: TokenRequest
) -> JSONResponse:
    """Make a token; its secret is in this answer and nowhere else."""

    def effect(connection: Connection) -> NewTokenResponse:
        if request.campaign is not None:
            campaigns.get(connection, request.campaign)
        made, secret = tokens.create(
            connection,
            name=request.name.strip(),
            user=request.user,
            role=request.role,
            expires_at=expiry(request.days),
            campaign=request.campaign,
        )
        log.info(
            "token created",
            token=made.id,
            user=made.user,
            role=made.role,
            by=principal.user,
        )
        return NewTokenResponse(**TokenResponse.of(made).model_dump(), token=secret)

    answer = idempotent.answer(201, effect, forget=("token",))
    answer.headers["Cache-Control"] = "no-store"
    return answer


@router.get("", responses=responses(422))
def list_tokens(
    service: ServiceDep,
    principal: PrincipalDep,
    before: CursorDep,
    limit: Limit = 50,
    user: Annotated[
        str | None, Query(max_length=100, description="only of this user")
    ] = None,
) -> TokenPage:
    """List one's own tokens, newest first; admins see everybody's."""
    if principal.role is not Role.ADMIN:
        user = principal.user
    with service.database.read() as connection:
        found = tokens.page(connection, before=before, limit=limit, user=user)
    items = [TokenResponse.of(token) for token in found]
    return TokenPage(items=items, next=next_cursor([t.id for t in found], limit))


@router.delete(
    "/{token}",
    status_code=204,
    responses=responses(404, 422),
    openapi_extra={"x-role": Role.VIEWER.value},
)
def revoke_token(service: ServiceDep, principal: PrincipalDep, token: str) -> None:
    """Revoke one's own token, or anybody's as admin; it ends at once."""
    with service.database.write() as connection:
        found = tokens.get(connection, token)
        if principal.role is not Role.ADMIN and found.user != principal.user:
            # whether there is such a token is not the sender's business
            raise MissingError("token", token)
        tokens.revoke(connection, found.id)
    log.info("token revoked", token=found.id, user=found.user, by=principal.user)
