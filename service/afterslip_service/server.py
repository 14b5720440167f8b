"""The HTTP server, which ends its streams before it waits for connections."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from afterslip_service.errors import ServiceError

GRACE_S = 5


class Server(uvicorn.Server):
    """Uvicorn, with streams that end when it shuts down.

    Listeners of events would otherwise keep their connections for ever, and
    uvicorn waits for connections before it tells the application anything.

    Parameters
    ----------
    port : 0 for any free one.
    tls : PEM files of certificate and key; None for plain HTTP.

    Raises
    ------
    ServiceError
        If the port is taken, or may not be listened on.
    """

    def __init__(
        self, app: FastAPI, host: str, port: int, tls: tuple[Path, Path] | None = None
    ) -> None:
        self._app = app
        self._socket = listen(host, port)
        self.port = int(self._socket.getsockname()[1])
        trusted = os.environ.get("FORWARDED_ALLOW_IPS", "")
        super().__init__(
            uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                timeout_graceful_shutdown=GRACE_S,
                server_header=False,
                # a header that anybody can send names no sender, unless an
                # operator has said whose header it is
                proxy_headers=bool(trusted),
                forwarded_allow_ips=trusted,
                ssl_certfile=None if tls is None else tls[0],
                ssl_keyfile=None if tls is None else tls[1],
            )
        )

    def serve_here(self) -> None:
        """Serve in this thread until asked to stop."""
        self.run(sockets=[self._socket])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything else."""
        await self._app.state.service.hub.close()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    ServiceError
        If the port is taken, or may not be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only where the protocol is named; else they
    # wait 40 ms for the other side's acknowledgement
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        reason = (error.strerror or str(error)).lower()
        raise ServiceError(
            f"cannot listen on {host}:{port}: {reason}; name another port with --port"
        ) from error
    return listening
