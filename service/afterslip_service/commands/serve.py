"""``afterslip serve``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

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
from afterslip_service.settings import check_bind, loopback
from afterslip_service.umask import private_files


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


@private_files()
def serve(
    database: Database = None,
    scheduler: Scheduler = None,
    store: Store = None,
    files: Annotated[
        Path | None, typer.Option(help="Folder for relative paths in specs.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address; other than loopback needs --auth.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port, 0 for any.")] = None,
    workers: Workers = None,
    auth: Annotated[
        bool | None, typer.Option("--auth/--no-auth", help="Ask for tokens.")
    ] = None,
    dispatcher: Annotated[
        Switch,
        typer.Option(
            help="off: only answer requests; `afterslip dispatch` does the rest."
        ),
    ] = Switch.ON,
    json_logs: JsonLogs = False,
) -> None:
    """Serve the API, the dispatcher and the dashboard until stopped.

    What is not given is read from AFTERSLIP_DATABASE, AFTERSLIP_STORE, ...
    """
    from afterslip_service.main import bring_down, bring_up, cluster, create_app
    from afterslip_service.server import Server

    settings = settings_of(
        database=database,
        scheduler=scheduler,
        store=store,
        files=files,
        host=host,
        port=port,
        workers=workers,
        auth=auth,
    )
    check_bind(settings.host, settings.auth)
    if dispatcher is Switch.ON:
        warn_of_scheduler(settings)
    logs.choose(json=json_logs)
    app = create_app(settings, cluster if dispatcher is Switch.ON else None)
    server = Server(app, settings.host, settings.port, settings.tls)
    try:
        bring_up(app)
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        scheme = "http" if settings.tls is None else "https"
        typer.echo(f"afterslip serves at {scheme}://{shown}:{server.port}")
        if scheme == "http" and not loopback(settings.host):
            typer.echo(
                "warning: without TLS everybody on the way reads the tokens; name "
                "AFTERSLIP_TLS_CERTIFICATE and AFTERSLIP_TLS_KEY, or a TLS proxy",
                err=True,
            )
        server.serve_here()
    finally:
        bring_down(app)
