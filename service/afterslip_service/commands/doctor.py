"""``afterslip doctor``: what this machine can do, what is wrong, how to correct it."""

from __future__ import annotations

import importlib
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import psutil
import typer

from afterslip.cli.rows import print_rows
from afterslip_service.commands import doctor_checks
from afterslip_service.commands.doctor_checks import GIB, SMALL_DISK, Finding
from afterslip_service.db import migrate
from afterslip_service.db.session import Database, SQLAlchemyError, shown_url
from afterslip_service.settings import Settings, read_settings
from afterslip_workers import entry

SMALL_MEMORY = 4 * GIB
PACKAGES = (
    "afterslip", "numpy", "scipy", "numba", "pyamg", "gmsh", "dask", "distributed",
    "zarr", "xarray", "fastapi", "sqlalchemy",
)  # fmt: skip


def doctor(
    database: Annotated[
        str | None, typer.Option(help="Database to look at, URL or file.")
    ] = None,
    store: Annotated[
        str | None, typer.Option(help="Store to look at, a folder or s3://….")
    ] = None,
) -> None:
    """Say what this machine can do and what is wrong; exit 1 if it cannot work."""
    given = {"database": database, "store": store}
    settings = read_settings(**{k: v for k, v in given.items() if v is not None})
    findings = list(examine(settings))
    rows = [(f.state, f.name, f.detail, f.hint) for f in findings]
    heads = ("state", "what", "found", "hint")
    print_rows(heads, rows, None, as_json=False, as_tsv=False)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything in turn."""
    yield _python()
    yield _packages()
    yield _cpu()
    yield _memory()
    yield from _gpu()
    yield _gmsh()
    yield from _database(settings)
    yield _store(settings)
    yield _disk(settings)
    yield from doctor_checks.checks(settings)


def _python() -> Finding:
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("Python", "ok", text)


def _packages() -> Finding:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        hint = "run `make setup`, or pip install afterslip again"
        return Finding("packages", "wrong", f"missing: {', '.join(missing)}", hint)
    return Finding("packages", "ok", ", ".join(found))


def _cpu() -> Finding:
    from afterslip_service.placement.local import cores

    count = psutil.cpu_count(logical=False) or "?"
    return Finding("CPU", "ok", f"{cores()} usable cores ({count} physical)")


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    text = f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB"
    if memory.available < SMALL_MEMORY:
        hint = "a campaign of 100,000 unknowns takes about 4 GiB: close something"
        return Finding("memory", "note", text, hint)
    return Finding("memory", "ok", text)


def _gpu() -> Iterator[Finding]:
    from afterslip_service.placement.launch import has_gpu
    from afterslip_service.placement.local import gpus

    if not gpus():
        yield Finding("GPU", "ok", "none found: the solver uses the CPU")
    elif not has_gpu() or not _importable("cupy"):
        hint = "pip install 'afterslip[gpu]'"
        yield Finding("GPU", "note", f"{len(gpus())} found, cannot be used", hint)
    else:
        yield Finding("GPU", "ok", f"{len(gpus())} found, one worker each")


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except (ImportError, OSError):
        return False
    return True


def _gmsh() -> Finding:
    try:
        gmsh = importlib.import_module("gmsh")
    except (ImportError, OSError) as error:
        hint = "install its libraries: sh deploy/system-libraries.sh"
        return Finding("gmsh", "wrong", f"does not load: {error}", hint)
    return Finding("gmsh", "ok", f"{gmsh.__version__} loads")


def _database(settings: Settings) -> Iterator[Finding]:
    shown = shown_url(settings.database)
    database = Database(settings.database)
    if database.is_sqlite:
        path = Path(database.engine.url.database or "")
        if not path.exists():
            yield _attempt(
                "database", f"{shown} will be made", lambda: _probe(path.parent)
            )
            return
    try:
        database.ping()
        have, want = migrate.current(database), migrate.newest(database)
        agrees = doctor_checks.clock(database)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        hint = "start it, or name another with --database"
        yield Finding("database", "wrong", f"{shown}: {reason}", hint)
        return
    finally:
        database.close()
    if have != want:
        detail = f"{shown}: schema {have or 'none'}, upgraded to {want} on start"
        yield Finding("database", "note", detail)
    else:
        yield Finding("database", "ok", f"{shown}: schema {have}")
    yield agrees


def _store(settings: Settings) -> Finding:
    store = settings.store
    if not isinstance(store, Path):
        return _attempt("store", f"{store} can be written", lambda: entry.probe(store))
    if not store.exists():
        parent = next(path for path in store.parents if path.exists())
        return _attempt("store", f"{store} will be made", lambda: _probe(parent))
    return _attempt("store", f"{store} can be written", lambda: _probe(store))


def _probe(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(b"x")


def _attempt(name: str, detail: str, probe: Callable[[], None]) -> Finding:
    try:
        probe()
    except OSError as error:
        hint = "correct its permissions, or name another"
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return Finding(name, "wrong", text, hint)
    return Finding(name, "ok", detail)


def _disk(settings: Settings) -> Finding:
    store = settings.store
    if not isinstance(store, Path):
        return Finding("disk", "ok", "the store is a bucket")
    folder = next(path for path in (store, *store.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    text = f"{free / GIB:.1f} GiB free for the store"
    if free < SMALL_DISK:
        return Finding("disk", "note", text, "a large campaign needs more")
    return Finding("disk", "ok", text)
