"""Which database a store's service goes by, so that no second one works beside it."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from afterslip_service.db.session import Database, shown_url
from afterslip_service.errors import StoreBusyError

MARK = ".service"


def use(store: Path | str, database: Database) -> IO[str] | None:
    """Say that a service with this database works on a store, until it is closed.

    Services of one database share a store; the kernel forgets those that die. A
    server's database has many addresses, so that only files are compared.

    Returns
    -------
    What to close at the end; None for a bucket, which cannot be locked.

    Raises
    ------
    StoreBusyError
        If this database is a file, and a service with another works on the store.
    """
    if not isinstance(store, Path):
        return None
    mine = shown_url(database.url)
    stream = (store / MARK).open("a+")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    except OSError:
        # a file system without locks: nothing can be said
        return stream
    else:
        stream.seek(0)
        stream.truncate()
        stream.write(mine)
        stream.flush()
    fcntl.flock(stream, fcntl.LOCK_SH)
    stream.seek(0)
    theirs = stream.read().strip()
    if database.is_sqlite and theirs and theirs != mine:
        stream.close()
        raise StoreBusyError(
            f"another service works on the store {store} with the database {theirs}, "
            f"and this one has {mine}: give --database {theirs} to work beside it, or "
            "name another --store"
        )
    return stream
