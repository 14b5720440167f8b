"""The HTTP server, which ends its streams before it waits for connections."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from fastapi import FastAPI

GRACE_S = 5


class Server(uvicorn.Server):
    """Uvicorn, with streams that end when it shuts down.

    Listeners of events would otherwise keep their connections for ever, and
    uvicorn waits for connections before it tells the application anything.
    """

    def __init__(self, app: FastAPI, host: str, port: int, **options: Any) -> None:
        self._app = app
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                access_log=False,
                timeout_graceful_shutdown=GRACE_S,
                **options,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then everything else."""
        await self._app.state.service.hub.close()
        await super().shutdown(sockets)

    @property
    def port(self) -> int:
        """The port that the server listens on, once it has started."""
        return int(self.servers[0].sockets[0].getsockname()[1])
