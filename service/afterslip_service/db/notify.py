"""Wake-up calls between processes on PostgreSQL; losing one costs only an interval."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from afterslip_service.db.events import CHANNEL
from afterslip_service.db.session import Database

if TYPE_CHECKING:
    import psycopg

RETRY_S = 5.0
_END_S = 2.0

log = structlog.get_logger()


class Listener:
    """Calls a function whenever another process has sent a notification.

    A thread with a connection of its own; nothing is lost that matters while it is
    away, because everybody looks at the database again after a while anyway. On
    SQLite, where there is one process, it does nothing.

    Parameters
    ----------
    wake : called from the thread.
    """

    def __init__(self, database: Database, wake: Callable[[], None]) -> None:
        self._database, self._wake = database, wake
        self._stop = threading.Event()
        self._asked: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self.received = 0

    def start(self) -> None:
        """Start to listen."""
        if self._database.is_sqlite:
            return
        self._asked, asked = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, args=(asked,), name="listener", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop to listen."""
        self._stop.set()
        if self._asked is not None and self._thread is not None:
            self._asked.close()
            self._thread.join(_END_S)

    def _run(self, asked: socket.socket) -> None:
        import psycopg

        url = self._database.url.replace("postgresql+psycopg://", "postgresql://")
        with asked:
            while not self._stop.is_set():
                try:
                    with psycopg.connect(url, autocommit=True) as connection:
                        connection.execute(f"LISTEN {CHANNEL}")
                        self._listen(connection, asked)
                except psycopg.Error as error:
                    log.warning("nobody can wake this process now", error=str(error))
                    self._stop.wait(RETRY_S)

    def _listen(self, connection: psycopg.Connection, asked: socket.socket) -> None:
        with selectors.DefaultSelector() as either:
            either.register(connection, selectors.EVENT_READ)
            either.register(asked, selectors.EVENT_READ)
            while not self._stop.is_set():
                for message in connection.notifies(timeout=0):
                    if message.payload != self._database.mark:
                        self.received += 1
                        self._wake()
                either.select()
