"""A name for every request, in its answer, in the lines of the log and in its span."""

from __future__ import annotations

import re
import time
import uuid

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterslip_common.observe import telemetry
from afterslip_service.http.guard import SAFE
from afterslip_service.http.problems import LEFT

HEADER = b"x-request-id"
# what a proxy may say: short, and nothing that would break a line of the log
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
FAULT = 500
# between /v1/campaigns/ and what follows
_CAMPAIGN = re.compile(r"^/v1/campaigns/([A-Za-z0-9-]{1,40})(?:/|$)")

log = structlog.get_logger()


class RequestId:
    """Middleware, the outermost one: names requests, and tells those that change."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on under its name."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = _given(scope) or uuid.uuid4().hex
        bound = {"request_id": name}
        if found := _CAMPAIGN.match(scope["path"]):
            bound["campaign"] = found[1]
        status, begun = LEFT, time.monotonic()

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", []), (HEADER, name.encode())]
                message = {**message, "headers": headers}
            await send(message)

        method, path = scope["method"], scope["path"]
        with (
            structlog.contextvars.bound_contextvars(**bound),
            telemetry.span("request", method=method, path=path, request=name),
        ):
            try:
                await self._app(scope, receive, marked)
            except BaseException:
                status = FAULT
                raise
            finally:
                if method not in SAFE or status >= FAULT:
                    log.info(
                        "request",
                        method=method,
                        path=path,
                        status=status,
                        ms=round(1000 * (time.monotonic() - begun), 1),
                    )


def _given(scope: Scope) -> str | None:
    for key, value in scope["headers"]:
        if key == HEADER and _PLAIN.fullmatch(value.decode("latin-1")):
            return str(value.decode("latin-1"))
    return None
