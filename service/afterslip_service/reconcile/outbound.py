"""One request to an address that a user has named, which may be meant to do harm.

The name is resolved once, every address that it has is judged, and the connection goes
to one of those: a second look-up could answer otherwise. Redirects are not followed,
proxies of the environment are not asked, and the body of the answer is not read.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable, Sequence
from typing import Any

import httpcore

from afterslip_service.engine.webhooks import Target, refusal, target

# s, of everything from the look-up of the name to the head of the answer
WITHIN_S = 10.0
AGENT = "afterslip-webhook/1"


class OutboundError(Exception):
    """Nothing was answered, or nothing may be sent there; the message says why."""


def judge(url: str, networks: Sequence[str]) -> tuple[Target, list[str]]:
    """Return where an address leads: its parts, and the addresses of its host.

    Raises
    ------
    OutboundError
        It is not one of a webhook, has no address, or has one that is not allowed.
    """
    try:
        parts = target(url)
    except ValueError as error:
        raise OutboundError(str(error)) from None
    try:
        found = socket.getaddrinfo(parts.host, parts.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OutboundError(f"{parts.host} has no address ({error})") from None
    addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
    for address in addresses:
        why = refusal(address, networks, tls=parts.tls)
        if why:
            raise OutboundError(why)
    return parts, addresses


def post(
    url: str, body: bytes, headers: dict[str, str], networks: Sequence[str]
) -> int:
    """Send a body and return the status of the answer.

    Parameters
    ----------
    networks : see `afterslip_service.engine.webhooks.refusal`.

    Raises
    ------
    OutboundError
        As of `judge`; or there was no answer within `WITHIN_S`.
    """
    until = time.monotonic() + WITHIN_S
    _, addresses = judge(url, networks)
    plain = {"content-type": "application/json", "user-agent": AGENT}
    every = {**plain, **headers, "connection": "close"}
    backend = _Pinned(addresses, until)
    limits = dict.fromkeys(("connect", "read", "write", "pool"), WITHIN_S)
    try:
        with (
            httpcore.ConnectionPool(
                ssl_context=ssl.create_default_context(), network_backend=backend
            ) as pool,
            pool.stream(
                "POST",
                url,
                headers=list(every.items()),
                content=body,
                extensions={"timeout": limits},
            ) as answer,
        ):
            return int(answer.status)
    except httpcore.TimeoutException:
        raise OutboundError(f"no answer within {WITHIN_S:g} s") from None
    except (
        httpcore.NetworkError,
        httpcore.ProtocolError,
        httpcore.UnsupportedProtocol,
        ssl.SSLError,
        OSError,
        ValueError,
    ) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise OutboundError(text[:300]) from None


class _Pinned(httpcore.SyncBackend):
    """Connects to addresses that were judged, whatever the name means by now."""

    def __init__(self, addresses: list[str], until: float) -> None:
        self._addresses, self._until = addresses, until

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed: httpcore.ConnectError | None = None
        for address in self._addresses:
            try:
                made = super().connect_tcp(
                    address, port, _left(self._until), local_address, socket_options
                )
            except httpcore.ConnectError as error:
                failed = error
            else:
                return _Timed(made, self._until)
        raise failed or httpcore.ConnectError("no address")


class _Timed(httpcore.NetworkStream):
    """A stream that ends at a moment, however slowly bytes arrive until then."""

    def __init__(self, stream: httpcore.NetworkStream, until: float) -> None:
        self._stream, self._until = stream, until

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._stream.read(max_bytes, _left(self._until))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._stream.write(buffer, _left(self._until))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        left = _left(self._until)
        return _Timed(
            self._stream.start_tls(ssl_context, server_hostname, left), self._until
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0.0:
        raise httpcore.ReadTimeout
    return left
