"""Bring a database to the newest schema.

The migrations sit on top of the service and are found by name, so that an
installed service can upgrade itself from any folder without importing them.
"""

from __future__ import annotations

import threading
from importlib.resources import files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy.exc import DBAPIError

from afterslip_service.db.session import Database, shown_url
from afterslip_service.errors import ServiceError

MIGRATIONS = "afterslip_migrations"

# Alembic keeps its context in a global; between processes the database locks
_ONE_AT_A_TIME = threading.Lock()


def configuration(database: Database) -> Config:
    """Return Alembic's configuration for this database."""
    config = Config()
    config.set_main_option("script_location", str(files(MIGRATIONS)))
    config.set_main_option("path_separator", "os")
    config.attributes["engine"] = database.engine
    return config


def upgrade(database: Database, revision: str = "head") -> None:
    """Upgrade the schema; does nothing where it is already new.

    Raises
    ------
    ServiceError
        If the database cannot be used, or a newer version has written it.
    """
    try:
        with _ONE_AT_A_TIME:
            command.upgrade(configuration(database), revision)
    except CommandError as error:
        raise ServiceError(
            f"the database {shown_url(database.url)} was written by a newer version "
            f"of afterslip ({error}): install that version"
        ) from error
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise ServiceError(
            f"the database {shown_url(database.url)} cannot be used: {reason}"
        ) from error


def downgrade(database: Database, revision: str) -> None:
    """Take the schema back to an older revision."""
    command.downgrade(configuration(database), revision)


def current(database: Database) -> str | None:
    """Return the revision of the database, None if it is empty."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest(database: Database) -> str | None:
    """Return the newest revision that this version of the service knows."""
    return ScriptDirectory.from_config(configuration(database)).get_current_head()
