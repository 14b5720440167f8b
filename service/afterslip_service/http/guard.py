"""What is turned away before any route sees it.

A page in the same user's browser must not be able to reach the service: neither
under a foreign name that resolves to its address, nor by a form or script of
another origin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_service.http.paths import most_bytes
from afterslip_service.http.problems import HEADERS, MEDIA
from afterslip_service.settings import Settings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
PRIVATE = (b"cache-control", b"private, no-cache")
# a year, as browsers expect it
TLS_ONLY = (b"strict-transport-security", b"max-age=31536000")


# a line feed at the end of a path would else reach the route without it
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class TooLargeError(Exception):
    """More came than the request may hold."""


class Guard:
    """Middleware: host, origin and size of a request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = LOOPBACK | {settings.host, *settings.allowed_hosts}
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]
        }
        path = scope["path"]
        limit = most_bytes(path, self._settings)
        refusal = self._refusal(scope, headers, limit)
        if refusal is not None:
            await refuse(send, path, *refusal)
            return
        tls = scope.get("scheme") == "https"
        started = False

        async def marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _completed(message.get("headers", []), path, tls)
            await send(message)

        try:
            await self._app(scope, _counted(receive, limit), marked)
        except TooLargeError:
            if not started:
                await refuse(send, path, 413, _too_large(limit))

    def _refusal(
        self, scope: Scope, headers: dict[str, str], limit: int
    ) -> tuple[int, str] | None:
        host = _host(f"//{headers.get('host', '')}")
        if host is None:
            return 400, "the header Host holds no name of a host"
        if host not in self._hosts:
            return 421, (
                f"this service does not answer to the name {host!r}; an operator may "
                "add it to AFTERSLIP_ALLOWED_HOSTS"
            )
        if _CONTROL.search(scope["path"]):
            return 400, "the address holds a NUL or another control character"
        if b"%00" in scope.get("query_string", b""):
            return 400, "the query of the address holds a NUL character"
        origin = headers.get("origin")
        foreign = origin is not None and _netloc(origin) != headers.get("host")
        if foreign and scope["method"] not in SAFE:
            return 403, f"a page of {origin} may not change anything here"
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return 413, _too_large(limit)
        return None


def _host(url: str) -> str | None:
    """Return the host that a URL names, "" for none; None where it is malformed."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return None


def _netloc(url: str) -> str | None:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return None


def _too_large(limit: int) -> str:
    return f"the body is larger than the {limit:,} bytes that are allowed here"


def _counted(receive: Receive, limit: int) -> Receive:
    """Count the bytes of a body that does not tell its length."""
    received = 0

    async def counting() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise TooLargeError
        return message

    return counting


def _completed(
    headers: list[tuple[bytes, bytes]], path: str, tls: bool
) -> list[tuple[bytes, bytes]]:
    """Return headers with those that every answer has, unless it has its own."""
    names = {name.lower() for name, _ in headers}
    added = [(name, value) for name, value in HEADERS if name not in names]
    if POLICY[0] not in names:
        added.append(POLICY)
    if path.startswith("/v1/") and PRIVATE[0] not in names:
        added.append(PRIVATE)
    if tls:
        added.append(TLS_ONLY)
    return [*headers, *added]


async def refuse(
    send: Send,
    path: str,
    status: int,
    detail: str,
    extra: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Answer with a problem document in place of the application."""
    body = json.dumps(
        {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "instance": path,
            "errors": [],
        }
    ).encode()
    headers = [
        (b"content-type", MEDIA.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *HEADERS,
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
