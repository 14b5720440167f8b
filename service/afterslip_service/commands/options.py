"""Options that several commands of the service share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from afterslip_service.settings import Settings, check_scheduler, read_settings

Database = Annotated[
    str | None, typer.Option(help="SQLAlchemy URL, or a file for SQLite.")
]
Scheduler = Annotated[
    str | None, typer.Option(help="`local`, or a Dask scheduler's tcp://host:port.")
]
Store = Annotated[
    str | None,
    typer.Option(help="Folder that all workers see at this path, or s3://…."),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Workers of the local cluster.")
]
JsonLogs = Annotated[bool, typer.Option("--json-logs", help="Logs for machines.")]


def settings_of(**given: Any) -> Settings:
    """Return settings; what is None comes from the environment."""
    return read_settings(**{key: v for key, v in given.items() if v is not None})


def warn_of_scheduler(settings: Settings) -> None:
    """Refuse a scheduler that opens the service to others, or warn of it.

    Raises
    ------
    SchedulerRefusedError
        See :func:`check_scheduler`.
    """
    warning = check_scheduler(settings.scheduler, settings.auth)
    if warning is not None:
        typer.echo(f"warning: {warning}", err=True)
