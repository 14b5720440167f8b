"""``afterslip dispatch``."""

from __future__ import annotations

import signal
import threading

import typer

from afterslip_service import logs
from afterslip_service.commands.options import (
    Database,
    JsonLogs,
    Scheduler,
    Store,
    Workers,
    settings_of,
    warn_of_scheduler,
)
from afterslip_service.umask import private_files

# a signal that another thread took is handled then: it does not wake the main one
LOOK_AGAIN_S = 1.0


@private_files()
def dispatch(
    database: Database = None,
    scheduler: Scheduler = None,
    store: Store = None,
    workers: Workers = None,
    json_logs: JsonLogs = False,
) -> None:
    """Place work on a scheduler, without an API, until stopped.

    Several may run; one acts, and another takes over when it dies. What is not
    given is read from AFTERSLIP_DATABASE, AFTERSLIP_STORE, ...
    """
    from afterslip_common.observe import telemetry
    from afterslip_service.db import migrate, session
    from afterslip_service.db.notify import Listener
    from afterslip_service.main import cluster
    from afterslip_service.placement.logged import LoggedPlacement
    from afterslip_service.reconcile.dispatcher import Dispatcher
    from afterslip_workers import entry

    settings = settings_of(
        database=database,
        scheduler=scheduler,
        store=store,
        workers=workers,
    )
    warn_of_scheduler(settings)
    logs.choose(json=json_logs)
    telemetry.start("dispatcher")
    known = session.Database(settings.database)
    migrate.upgrade(known)
    entry.prepare(settings.store)
    placement = LoggedPlacement(cluster(settings))
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
        while not ended.wait(LOOK_AGAIN_S):
            pass
    finally:
        listener.stop()
        dispatcher.stop()
        placement.close()
        known.close()
        telemetry.stop()
