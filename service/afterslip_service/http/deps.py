"""What routes are given."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Annotated, Any

from fastapi import Depends, Header, HTTPException, Query, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse

from afterslip.spec.files import StoredFiles
from afterslip_service.db import idempotency
from afterslip_service.db.notify import Listener
from afterslip_service.db.session import Connection, Database
from afterslip_service.engine.access import Principal
from afterslip_service.http.stream import Hub
from afterslip_service.placement.base import Placement
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.settings import Settings
from afterslip_workers import entry


@dataclass(slots=True)
class Service:
    """The parts of a running service."""

    settings: Settings
    database: Database
    hub: Hub
    placement: Placement | None = None
    dispatcher: Dispatcher | None = None
    listener: Listener | None = None
    up: bool = False
    # parts that were not ready when last asked for, and why
    wrong: dict[str, str] = field(default_factory=dict)
    store_use: IO[str] | None = None

    @property
    def files(self) -> StoredFiles:
        """Files that specs may name."""
        return entry.files_of(self.settings.store, self.settings.files)

    def wake(self) -> None:
        """Tell the dispatcher and the listeners that something has changed."""
        if self.dispatcher is not None:
            self.dispatcher.wake()
        self.hub.wake()


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


def _optional_principal(request: Request) -> Principal | None:
    principal: Principal | None = request.state.principal
    return principal


OptionalPrincipalDep = Annotated[Principal | None, Depends(_optional_principal)]


def _principal(principal: OptionalPrincipalDep) -> Principal:
    if principal is None:
        # the middleware lets nobody without a token past, other than to what is public
        raise HTTPException(401, "this service asks for a token")
    return principal


PrincipalDep = Annotated[Principal, Depends(_principal)]


@dataclass(frozen=True, slots=True)
class Idempotent:
    """A request that may carry an ``Idempotency-Key``."""

    service: Service
    route: str
    key: str | None
    digest: str

    def answer(
        self,
        status: int,
        effect: Callable[[Connection], Any],
        forget: tuple[str, ...] = (),
    ) -> JSONResponse:
        """Do something once, and answer; a repeated request gets the same answer.

        Parameters
        ----------
        effect : makes the change in the transaction that it is given and returns
            what to answer.
        forget : keys of the answer that are not recorded; null when repeated.
        """
        with self.service.database.write() as connection:
            if self.key is None:
                body = jsonable_encoder(effect(connection))
            else:
                known = idempotency.reserve(
                    connection, self.key, self.route, self.digest
                )
                if known is not None:
                    headers = {"Idempotent-Replayed": "true"}
                    return JSONResponse(known.body, known.status, headers)
                body = jsonable_encoder(effect(connection))
                recorded = {**body, **dict.fromkeys(forget)} if forget else body
                idempotency.remember(connection, self.key, self.route, status, recorded)
        self.service.wake()
        return JSONResponse(body, status)


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="the same key with the same request has one effect",
    ),
]


async def _idempotent(
    request: Request,
    service: ServiceDep,
    principal: PrincipalDep,
    idempotency_key: IdempotencyKey = None,
) -> Idempotent:
    digest = hashlib.sha256(await request.body()).hexdigest()
    return idempotent_by(request, service, principal, idempotency_key, digest)


def idempotent_by(
    request: Request,
    service: Service,
    principal: Principal,
    key: str | None,
    digest: str,
) -> Idempotent:
    """Return the request whose body has a digest; keys are each user's own."""
    route = f"{request.method} {request.url.path}"
    if principal.user is not None:
        # hashed to fit, and so that no user can name another's
        owner = hashlib.sha256(principal.user.encode()).hexdigest()[:32]
        route = f"{owner} {route}"
    return Idempotent(service, route[:200], key, digest)


IdempotentDep = Annotated[Idempotent, Depends(_idempotent)]


def encode_cursor(identity: str | int) -> str:
    """Return an opaque cursor that stands behind an item."""
    return base64.urlsafe_b64encode(str(identity).encode()).decode().rstrip("=")


def _decode_cursor(
    cursor: Annotated[
        str | None, Query(max_length=100, description="`next` of the page before")
    ] = None,
) -> str | None:
    if cursor is None:
        return None
    padded = cursor + "=" * (-len(cursor) % 4)
    try:
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        raise HTTPException(
            422, "cursor: is not one of ours; take `next` of a page as it is"
        ) from None


CursorDep = Annotated[str | None, Depends(_decode_cursor)]
Limit = Annotated[int, Query(ge=1, le=500, description="items on a page")]


def next_cursor(identities: list[Any], limit: int) -> str | None:
    """Return the cursor of the next page, None if this page was not full."""
    return encode_cursor(identities[-1]) if len(identities) == limit else None
