"""Bodies of requests: how much of one is read, by whom, and how many at a time.

The middleware stands behind the one that asks for tokens, so that nothing is read of
an unauthenticated request. A body is decoded once: routes find the value in the
request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_service.http import json_reader
from afterslip_service.http.guard import SAFE, refuse
from afterslip_service.http.json_reader import BodyError, TooManyValuesError
from afterslip_service.http.paths import RAW_PATH, SESSION, SMALL, public
from afterslip_service.settings import Settings

READ_S = 60.0
WAIT_S = 2.0


class JsonRequest(Request):
    """A request whose body the middleware has decoded."""

    async def json(self) -> Any:
        """Return what the body says."""
        return self.scope["state"]["json"]


class JsonRoute(APIRoute):
    """A route that takes JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which decodes nothing again."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(JsonRequest(request.scope, request.receive))

        return handle


class _Refused(Exception):  # noqa: N818 never leaves this file
    def __init__(self, status: int, detail: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


class _Left(Exception):  # noqa: N818 never leaves this file
    pass


class Bodies:
    """Middleware: reads and decodes the bodies of the routes that take one."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._slots = Slots(settings.large_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with what its body says, or answer it with a problem."""
        if scope["type"] != "http" or not _takes_json(scope):
            await self._app(scope, receive, send)
            return
        principal = scope["state"].get("principal")
        slot = self._slots.slot(getattr(principal, "token", None))
        try:
            body = await self._read(scope, receive, slot)
            if body:
                scope["state"]["json"] = await self._decode(scope, body)
        except _Left:
            slot.release()
            return
        except _Refused as refused:
            slot.release()
            extra = refused.headers
            await refuse(send, scope["path"], refused.status, refused.detail, extra)
            return
        except BaseException:
            slot.release()
            raise
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def answered(message: Message) -> None:
            # a client that is slow to read the answer takes no slot
            slot.release()
            await send(message)

        try:
            await self._app(scope, replay, answered)
        finally:
            slot.release()

    async def _read(self, scope: Scope, receive: Receive, slot: Slot) -> bytes:
        """Read a body; a large one only while few others are."""
        length = _header(scope, b"content-length")
        if length.isdigit() and int(length) > SMALL:
            await slot.take()
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(READ_S):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise _Left
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    more = message.get("more_body", False)
                    if size > SMALL:
                        await slot.take()
        except TimeoutError:
            detail = f"the body did not arrive within {READ_S:g} s: send it again"
            raise _Refused(408, detail) from None
        return b"".join(parts)

    async def _decode(self, scope: Scope, body: bytes) -> Any:
        if not _is_json(_header(scope, b"content-type")):
            raise _Refused(415, "send JSON, with Content-Type: application/json")
        most = self._settings.max_values
        try:
            return await run_in_threadpool(json_reader.read, body, most)
        except TooManyValuesError as error:
            hint = "send less at once, or upload a file"
            raise _Refused(413, f"the body {error}: {hint}") from None
        except BodyError as error:
            raise _Refused(400, f"the body {error}") from None


class Slots:
    """Room for large bodies; one token takes half of it at most."""

    def __init__(self, count: int) -> None:
        self.free = asyncio.Semaphore(count)
        self.of_one = max(1, count // 2)
        self.taken: Counter[str] = Counter()

    def slot(self, token: str | None) -> Slot:
        """Return a slot that is not taken yet."""
        return Slot(self, token)


class Slot:
    """Room for one large body, from its arrival to its answer."""

    def __init__(self, slots: Slots, token: str | None) -> None:
        self._slots, self._token = slots, token
        self._taken = False

    async def take(self) -> None:
        """Take a slot, which others may have to free first."""
        if self._taken:
            return
        slots, token = self._slots, self._token
        try:
            if token is not None and slots.taken[token] >= slots.of_one:
                raise TimeoutError
            async with asyncio.timeout(WAIT_S):
                await slots.free.acquire()
        except TimeoutError:
            detail = (
                f"other large bodies are being read: come back in {WAIT_S:g} s, or "
                "upload files by /v1/files"
            )
            retry = (b"retry-after", f"{WAIT_S:.0f}".encode())
            raise _Refused(503, detail, retry) from None
        self._taken = True
        if token is not None:
            slots.taken[token] += 1

    def release(self) -> None:
        """Give the slot back; may be repeated."""
        if not self._taken:
            return
        self._taken = False
        self._slots.free.release()
        if self._token is not None:
            self._slots.taken[self._token] -= 1
            self._slots.taken += Counter()  # drops the tokens that have none


def _takes_json(scope: Scope) -> bool:
    """Tell whether a body is to be read: some route must want it."""
    path = scope["path"]
    if scope["method"] in SAFE or path == RAW_PATH:
        return False
    if public(path) and path != SESSION:
        return False
    routes = scope["app"].router.routes
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def _header(scope: Scope, name: bytes) -> bytes:
    return next((bytes(v) for k, v in scope["headers"] if k == name), b"")


def _is_json(kind: bytes) -> bool:
    media = kind.partition(b";")[0].strip().lower()
    return media == b"application/json" or (
        media.startswith(b"application/") and media.endswith(b"+json")
    )
