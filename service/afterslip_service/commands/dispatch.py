"""``afterslip dispatch``."""

from __future__ import annotations

import signal
import threading
from typing import Annotated, Any

import typer

from afterslip_service import logs
from afterslip_service.settings import Settings


def dispatch(
    database: Annotated[
        str | None, typer.Option(help="SQLAlchemy URL, or a file for SQLite.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="`local`, or a Dask scheduler's tcp://host:port.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="Folder that all workers see at this path, or s3://…."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers of the local cluster.")
    ] = None,
    json_logs: Annotated[
        bool, typer.Option("--json-logs", help="Logs for machines.")
    ] = False,
) -> None:
    """Place work on a scheduler, without an API, until stopped.

    Several may run; one acts, and another takes over when it dies. What is not
    given is read from AFTERSLIP_DATABASE, AFTERSLIP_STORE, ...
    """
    from afterslip_service.db import migrate
    from afterslip_service.db.notify import Listener
    from afterslip_service.db.session import Database
    from afterslip_service.main import cluster
    from afterslip_service.placement.told import Told
    from afterslip_service.reconcile.dispatcher import Dispatcher
    from afterslip_workers import entry, telemetry

    given: dict[str, Any] = {
        "database": database,
        "scheduler": scheduler,
        "store": store,
        "workers": workers,
    }
    settings = Settings(**{k: v for k, v in given.items() if v is not None})
    logs.choose(json=json_logs)
    telemetry.start("dispatcher")
    known = Database(settings.database)
    migrate.upgrade(known)
    entry.prepare(settings.store)
    placement = Told(cluster(settings))
    dispatcher = Dispatcher(known, placement, settings)
    placement.wake = dispatcher.wake
    listener = Listener(known, dispatcher.wake)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    try:
        listener.start()
        dispatcher.start()
        typer.echo(f"afterslip dispatches to {settings.scheduler}")
        ended.wait()
    finally:
        listener.stop()
        dispatcher.stop()
        placement.close()
        known.close()
        telemetry.stop()
