"""What JSON bodies may hold, before any route parses them.

Python's parser is kinder than RFC 8259: it takes NaN, keys that come twice and any
depth, and a text may hold what no database keeps.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_service.routes.guard import RAW_PATH, SAFE, refuse

DEEPEST = 64
DIGITS = 400


class Bodies:
    """Middleware: turns away bodies that are not plain JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        wanted = scope["type"] == "http" and scope["method"] not in SAFE
        if not wanted or scope["path"] == RAW_PATH:
            await self._app(scope, receive, send)
            return
        body = b""
        more = True
        parts: list[bytes] = []
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return  # the client has left
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(parts)
        if body:
            kind = next((v for k, v in scope["headers"] if k == b"content-type"), b"")
            if not _is_json(kind):
                detail = "send JSON, with Content-Type: application/json"
                await refuse(send, scope["path"], 415, detail)
                return
            found = await run_in_threadpool(trouble, body)
            if found is not None:
                await refuse(send, scope["path"], 400, f"the body {found}")
                return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)


def _is_json(kind: bytes) -> bool:
    media = kind.partition(b";")[0].strip().lower()
    return media == b"application/json" or (
        media.startswith(b"application/") and media.endswith(b"+json")
    )


class _Unfit(Exception):  # noqa: N818 never leaves this file
    pass


def trouble(body: bytes) -> str | None:
    """Return what is wrong with a body, None for plain JSON."""
    try:
        _walk(
            json.loads(
                body.decode("utf-8"),
                object_pairs_hook=_pairs,
                parse_constant=_constant,
                parse_int=_integer,
            )
        )
    except UnicodeDecodeError:
        return "is not UTF-8"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        return f"is not JSON: {error.msg.lower()} ({where})"
    except RecursionError:
        return f"is nested deeper than {DEEPEST} levels"
    except _Unfit as error:
        return str(error)
    return None


def _constant(word: str) -> Any:
    raise _Unfit(f"holds {word}, which is not a number of JSON")


def _integer(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _Unfit(f"holds a number of more than {DIGITS} digits")
    return int(digits)


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise _Unfit(f"gives the key {twice[:80]!r} twice")
    return found


def _walk(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _text(item)
            elif isinstance(item, dict):
                for key in item:
                    _text(key)
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return
        level = below
    raise _Unfit(f"is nested deeper than {DEEPEST} levels")


def _text(text: str) -> None:
    if "\0" in text:
        raise _Unfit("holds a text with a NUL character")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _Unfit("holds half of a surrogate pair, which is no text") from None
