"""A whole service inside this process: SQLite, a local cluster, loopback HTTP."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fastapi import FastAPI

from afterslip_service import logs
from afterslip_service.errors import DirectoryBusyError, ServiceError
from afterslip_service.main import (
    MakePlacement,
    bring_down,
    bring_up,
    cluster,
    create_app,
)
from afterslip_service.server import Server
from afterslip_service.settings import Settings
from afterslip_service.umask import private_files

LOCK = "service.lock"
LOG = "service.log"
DATABASE = "afterslip.sqlite"
STORE = "store"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0


class Embedded:
    """A running service; use it in ``with``, or call ``close``.

    Attributes
    ----------
    url : where it listens, on loopback.
    directory : where it keeps everything, also its log; a second start goes on.
    """

    def __init__(
        self, app: FastAPI, port: int, directory: Path, resources: ExitStack
    ) -> None:
        self._app = app
        self._resources = resources
        self.directory = directory
        self._thread: threading.Thread | None = None
        try:
            bring_up(app)
            self._server = Server(app, "127.0.0.1", port)
            self._thread = threading.Thread(
                target=self._server.serve_here, name="service"
            )
            self._thread.start()
            self._await_start()
        except BaseException:
            self.close()
            raise
        self.url = f"http://127.0.0.1:{self._server.port}"

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._server.started:
            if not self._thread or not self._thread.is_alive():
                raise ServiceError("the service did not start; its log says why")
            if time.monotonic() > deadline:
                raise ServiceError(f"the service did not start in {START_TIMEOUT_S} s")
            time.sleep(0.02)

    def close(self) -> None:
        """Stop the service; what ran is taken up again by the next start."""
        if self._thread is not None:
            self._server.should_exit = True
            self._thread.join(STOP_TIMEOUT_S)
        bring_down(self._app)
        self._resources.close()

    def __enter__(self) -> Embedded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def start(
    directory: str | Path,
    workers: int | None = None,
    port: int = 0,
    placement: MakePlacement = cluster,
    **settings: Any,
) -> Embedded:
    """Start a service that keeps everything in a directory.

    Parameters
    ----------
    directory : made if it is not there.
    workers : processes that solve; one a core if None.
    port : on loopback; 0 for any free one.
    placement : makes the placement.
    settings : further fields of :class:`Settings`.

    Raises
    ------
    DirectoryBusyError
        If another service works in the directory.
    ServiceError
        If the service or its workers do not start.
    """
    root = Path(directory).absolute()
    resources = ExitStack()
    # only here: the files of the program that embeds the service are its own matter
    with private_files():
        root.mkdir(parents=True, exist_ok=True)
        resources.enter_context(_lock(root))
        # the terminal belongs to the program that embeds the service
        log = resources.enter_context((root / LOG).open("a"))
        # SQLite gives its journal the mode of the database
        (root / DATABASE).touch()
        if "store" not in settings:
            settings["store"] = root / STORE
            settings["store"].mkdir(exist_ok=True)
    resources.enter_context(logs.to(log, logging.INFO))
    chosen = Settings(
        database=str(root / DATABASE),
        scheduler="local",
        workers=workers,
        host="127.0.0.1",
        port=port,
        # the program that embeds the service is its only user
        auth=False,
        **settings,
    )
    try:
        return Embedded(create_app(chosen, placement), port, root, resources)
    except RuntimeError as error:
        resources.close()
        raise ServiceError(f"the workers did not start: {error}") from error
    except BaseException:
        resources.close()
        raise


def _lock(root: Path) -> IO[str]:
    """Take the directory for this process; the kernel frees it when we die."""
    stream = (root / LOCK).open("a+")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.seek(0)
        holder = stream.read().strip() or "unknown"
        stream.close()
        raise DirectoryBusyError(
            f"another service (process {holder}) works in {root}: "
            "wait for it to end, stop it, or name another directory"
        ) from None
    stream.seek(0)
    stream.truncate()
    stream.write(str(os.getpid()))
    stream.flush()
    return stream
