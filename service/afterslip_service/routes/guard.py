"""What is turned away before any route sees it.

The service listens on loopback and knows no users, so a page in the same user's
browser must not be able to reach it: neither under a foreign name that resolves
to loopback, nor by a form or script of another origin.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_service.routes.problems import MEDIA
from afterslip_service.settings import Settings

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"x-frame-options", b"SAMEORIGIN"),
]


class TooLargeError(Exception):
    """More came than the request may hold."""


class Guard:
    """Middleware: host, origin and size of a request."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = LOOPBACK | set(settings.allowed_hosts)
        self._max_upload = settings.max_upload
        self._max_body = settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]
        }
        path = scope["path"]
        limit = self._max_upload if path == "/v1/files" else self._max_body
        refusal = self._refusal(scope["method"], headers, limit)
        if refusal is not None:
            await _refuse(send, path, *refusal)
            return
        started = False

        async def marked(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        try:
            await self._app(scope, _counted(receive, limit), marked)
        except TooLargeError:
            if not started:
                await _refuse(send, path, 413, _too_large(limit))

    def _refusal(
        self, method: str, headers: dict[str, str], limit: int
    ) -> tuple[int, str] | None:
        host = urlsplit(f"//{headers.get('host', '')}").hostname
        if host not in self._hosts:
            return 421, f"this service does not answer to the name {host!r}"
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
        if foreign and method not in SAFE:
            return 403, f"a page of {origin} may not change anything here"
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return 413, _too_large(limit)
        return None


def _too_large(limit: int) -> str:
    return f"the body is larger than the {limit:,} bytes that are allowed here"


def _counted(receive: Receive, limit: int) -> Receive:
    """Count the bytes of a body that does not tell its length."""
    seen = 0

    async def counting() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise TooLargeError
        return message

    return counting


async def _refuse(send: Send, path: str, status: int, detail: str) -> None:
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
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
