"""Who sends a request, whether that is allowed, and how often.

The middleware finds out who it is before anything of a body is read; the
dependency, which every route has without asking for it, compares that with what the
route needs. A route that says nothing may be read by viewers and changes only what
belongs to the sender.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any

import structlog
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_service.db import campaigns, inversions, tokens
from afterslip_service.db.session import (
    Connection,
    Database,
    DBAPIError,
    PoolTimeoutError,
    SQLAlchemyError,
)
from afterslip_service.engine.access import EVERYBODY, Principal, Role
from afterslip_service.engine.buckets import Buckets, Level
from afterslip_service.errors import ForbiddenError, MissingError
from afterslip_service.http.deps import Service, ServiceDep
from afterslip_service.http.guard import SAFE, refuse
from afterslip_service.http.paths import READINESS, SESSION, public
from afterslip_service.settings import Settings

COOKIE = "afterslip_session"
# browsers take this prefix only over TLS, for this host and from nobody else
SECURE_COOKIE = f"__Host-{COOKIE}"
CSRF_HEADER = "x-csrf-token"
REALM = 'Bearer realm="afterslip"'
ASK = (
    "this service asks for a token: send `Authorization: Bearer ...`, sign in on the "
    "page, or give the command --token or AFTERSLIP_TOKEN"
)
WRONG = "the token is not valid: it is unknown, expired or revoked"

log = structlog.get_logger()


def csrf_of(cookie: str) -> str:
    """Return what a page must say beside its cookie to change anything.

    It is derived from the cookie, which scripts cannot read, so that another
    origin can neither guess nor plant it.
    """
    return hmac.new(cookie.encode(), b"csrf", hashlib.sha256).hexdigest()


def cookie_of(headers: dict[str, str]) -> str | None:
    """Return the session's cookie of a request, None without one."""
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    found = jar.get(SECURE_COOKIE) or jar.get(COOKIE)
    return found.value if found is not None else None


class _Asked:
    """What a request says about its sender.

    Attributes
    ----------
    bearer : it brings a token; else the secret, if there is one, is a session's.
    lenient : anybody may ask for this, also with a token that is worthless.
    signs_in : it asks for a session, and needs none, least of all an old one.
    tolerated : it asks who it is, and brings no token that could be wrong.
    """

    def __init__(self, scope: Scope) -> None:
        self.path: str = scope["path"]
        self.address: str = (scope.get("client") or ("", 0))[0]
        self.headers = {
            k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]
        }
        self.bearer = "authorization" in self.headers
        self.lenient = public(self.path) and self.path != SESSION
        self.signs_in = self.path == SESSION and scope["method"] == "POST"
        self.tolerated = self.path == SESSION and not self.bearer
        if self.bearer:
            self.secret = _bearer(self.headers["authorization"])
        else:
            self.secret = "" if self.signs_in else cookie_of(self.headers) or ""
        if self.lenient and self.path != READINESS:
            self.secret = ""


class Access:
    """Middleware: sender, rate and cross-site forgery of a request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._auth = settings.auth
        limited = settings.auth and settings.rate > 0
        self._senders = Buckets(settings.rate, settings.rate_burst) if limited else None
        self._unauthenticated = Buckets(1.0, 30) if limited else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its principal, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        if not self._auth:
            state["principal"] = EVERYBODY
            await self._app(scope, receive, send)
            return
        asked = _Asked(scope)
        principal = None
        if asked.secret:
            database: Database = scope["app"].state.service.database
            try:
                principal = await run_in_threadpool(
                    _identify, database, asked.secret, session=not asked.bearer
                )
            except (DBAPIError, PoolTimeoutError):
                detail = "the database does not answer; nothing was changed, try again"
                await refuse(send, asked.path, 503, detail, [(b"retry-after", b"5")])
                return
        if principal is None and not asked.lenient and not asked.tolerated:
            if asked.secret and not (level := self._turn(asked.address)).allowed:
                await _refuse_flood(send, asked.path, level)
                return
            hint = f'{REALM}, error="invalid_token"' if asked.secret else REALM
            extra = [(b"www-authenticate", hint.encode())]
            detail = WRONG if asked.secret else ASK
            await refuse(send, asked.path, 401, detail, extra)
            return
        if principal is not None and _forged(scope["method"], asked, principal):
            detail = f"the page must send {CSRF_HEADER}: reload it and try again"
            await refuse(send, asked.path, 403, detail)
            return
        state |= {"principal": principal, "turn_of_unauthenticated": self._turn}
        if principal is None or self._senders is None:
            await self._app(scope, receive, send)
            return
        level = self._senders.take(tokens.digest(asked.secret), time.monotonic())
        if not level.allowed:
            await _refuse_flood(send, asked.path, level)
            return
        rate = _rate_headers(level, self._senders.burst)

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *rate]
            await send(message)

        await self._app(scope, receive, marked)

    def _turn(self, address: str) -> Level:
        """Count a secret that opened nothing; too many of an address are slowed.

        Secrets are looked up first: whose token is valid is let in, whatever others
        behind the same address have tried.
        """
        if self._unauthenticated is None:
            return Level(allowed=True, left=0, wait=0)
        return self._unauthenticated.take(address, time.monotonic())


def _bearer(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _forged(method: str, asked: _Asked, principal: Principal) -> bool:
    """Tell whether a change by cookie lacks what only our own page knows."""
    if not principal.session or method in SAFE:
        return False
    said = asked.headers.get(CSRF_HEADER, "").encode()
    return not hmac.compare_digest(said, csrf_of(asked.secret).encode())


def _identify(database: Database, secret: str, *, session: bool) -> Principal | None:
    """Return who has a secret, None if it opens nothing."""
    look = tokens.of_session if session else tokens.of_secret
    with database.read() as connection:
        token = look(connection, secret)
    if token is None:
        return None
    if tokens.stale(token):
        try:
            with database.write() as connection:
                tokens.touch(connection, token.id)
        except SQLAlchemyError as error:
            log.warning("last use of a token is not noted", error=str(error))
    return Principal(
        token.user, token.role, token.id, token.expires_at, session, token.campaign
    )


async def _refuse_flood(send: Send, path: str, level: Level) -> None:
    detail = f"too many requests: come back in {max(1, level.wait)} s"
    extra = [(b"retry-after", str(max(1, level.wait)).encode())]
    await refuse(send, path, 429, detail, extra)


def _rate_headers(level: Level, burst: int) -> list[tuple[bytes, bytes]]:
    """Return the headers of draft-ietf-httpapi-ratelimit-headers-10."""
    return [
        (b"ratelimit-policy", f'"default";q={burst}'.encode()),
        (b"ratelimit", f'"default";r={level.left};t={level.wait}'.encode()),
    ]


def still_valid(database: Database, principal: Principal) -> bool:
    """Tell whether the token of a long answer has not been revoked meanwhile."""
    if principal.token is None:
        return True
    try:
        with database.read() as connection:
            return tokens.usable(connection, principal.token)
    except SQLAlchemyError:
        return True  # the database is away; the next look will tell


def needed(extra: dict[str, Any] | None, method: str) -> Role:
    """Return the role that an operation needs: what it says, or by its method."""
    said = (extra or {}).get("x-role")
    if said is not None:
        return Role(said)
    return Role.VIEWER if method in SAFE else Role.SUBMITTER


def authorize(request: Request, service: ServiceDep) -> None:
    """Compare what a route needs with who asks; every route has this dependency.

    Raises
    ------
    ForbiddenError
        If the role does not reach, or if what the path names belongs to somebody
        else.
    MissingError
        If what would be changed does not exist.
    """
    principal: Principal | None = request.state.principal
    if principal is None:
        return  # public: the middleware has let it pass
    role = needed(getattr(request.scope.get("route"), "openapi_extra", None),
                  request.method)  # fmt: skip
    if not principal.role.covers(role):
        raise ForbiddenError(
            f"this takes the role {role}, and the token has {principal.role}"
        )
    if principal.campaign is not None and not public(request.url.path):
        _must_be_shared(request, service, principal.campaign)
    if role is Role.VIEWER or principal.role.covers(Role.OPERATOR):
        return
    named = request.path_params
    if "campaign" not in named and "inversion" not in named:
        return
    with service.database.read() as connection:
        campaign = named.get("campaign")
        if campaign is None:
            campaign = inversions.get(connection, named["inversion"]).campaign_id
        must_own(connection, principal, campaign)


def _must_be_shared(request: Request, service: Service, campaign: str) -> None:
    """Raise unless a path is below the one campaign that a link shows.

    Whatever names no campaign is refused, so that routes to come are closed to links.

    Raises
    ------
    ForbiddenError
        If it is below another one, or below none.
    """
    named = request.path_params
    found = named.get("campaign")
    if (request.method, request.url.path) == ("GET", "/v1/inversions"):
        # a list by campaign: one that is said twice could be read in two ways
        asked = request.query_params.getlist("campaign")
        found = asked[0] if len(asked) == 1 else None
    elif found is None and "inversion" in named:
        with service.database.read() as connection:
            try:
                found = inversions.get(connection, named["inversion"]).campaign_id
            except MissingError:
                found = None  # nor does a link tell what there is
    if found != campaign:
        raise ForbiddenError("this link shows one campaign and nothing else")


def must_own(connection: Connection, principal: Principal, campaign: str) -> None:
    """Raise unless a campaign may be changed.

    Raises
    ------
    ForbiddenError
        If it belongs to somebody else.
    MissingError
        If there is none.
    """
    found = campaigns.get(connection, campaign)
    if not principal.may_change(found.owner):
        raise ForbiddenError(
            f"the campaign {found.name!r} belongs to {found.owner or 'nobody'}: its "
            "owner and operators may change it"
        )
