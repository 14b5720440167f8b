"""Alive, and ready for work: each part by its name."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from fastapi import APIRouter, Response

from afterslip_service.db import leases, migrate
from afterslip_service.db.session import SQLAlchemyError
from afterslip_service.http.deps import OptionalPrincipalDep, Service, ServiceDep
from afterslip_service.reconcile.leadership import LEASE
from afterslip_service.routes.responses import Health, Part, Readiness
from afterslip_workers import entry

log = structlog.get_logger()
router = APIRouter(tags=["health"])


@router.get("/healthz")
async def health() -> Health:
    """Say that the process lives."""
    return Health(status="alive")


@router.get("/readyz", responses={503: {"model": Readiness}})
def readiness(
    service: ServiceDep, principal: OptionalPrincipalDep, response: Response
) -> Readiness:
    """Say of each part whether it can do its work, and what is wrong with it."""
    checks: dict[str, Callable[[Service], Part]] = {
        "database": _database,
        "store": _store,
        "dispatcher": _dispatcher,
        "placement": _placement,
    }
    parts = {name: check(service) for name, check in checks.items()}
    wrong = {name: part.detail for name, part in parts.items() if not part.ok}
    if wrong != service.wrong:
        # once, however often it is asked for
        log.warning("not ready", **wrong) if wrong else log.info("ready again")
        service.wrong = wrong
    ready = not wrong
    response.status_code = 200 if ready else 503
    if principal is None:
        # what is wrong with it is shown with a token only
        parts = {name: Part(ok=part.ok, detail="") for name, part in parts.items()}
    return Readiness(ready=ready, parts=parts)


def _database(service: Service) -> Part:
    try:
        service.database.ping()
        have = migrate.current(service.database)
    except SQLAlchemyError as error:
        return Part(ok=False, detail=f"does not answer: {error}")
    want = migrate.newest(service.database)
    if have != want:
        return Part(ok=False, detail=f"has schema {have}, this version needs {want}")
    return Part(ok=True, detail=f"schema {have}")


def _store(service: Service) -> Part:
    store = service.settings.store
    try:
        entry.probe(store)
    except OSError as error:
        reason = error.strerror or error
        return Part(ok=False, detail=f"{store} cannot be written: {reason}")
    return Part(ok=True, detail="can be written")


def _dispatcher(service: Service) -> Part:
    dispatcher = service.dispatcher
    if dispatcher is not None and not dispatcher.alive:
        return Part(ok=False, detail="has stopped: restart the service")
    if dispatcher is not None and dispatcher.trouble is not None:
        return Part(ok=False, detail=dispatcher.trouble)
    if dispatcher is not None and dispatcher.leads:
        return Part(ok=True, detail="leads")
    try:
        with service.database.read() as connection:
            holder = leases.holder(connection, LEASE)
    except SQLAlchemyError:
        return Part(ok=False, detail="cannot be asked for: the database is away")
    if holder is None:
        return Part(ok=False, detail="no process holds the dispatcher's lease")
    return Part(ok=True, detail=f"{holder} leads")


def _placement(service: Service) -> Part:
    placement = service.placement
    if placement is None:
        return _elsewhere(service)
    trouble = placement.trouble()
    if trouble is not None:
        return Part(ok=False, detail=trouble)
    return Part(ok=True, detail=f"{placement.slots()} slots")


def _elsewhere(service: Service) -> Part:
    """Pass on what the leading dispatcher says of its workers.

    A service without workers still takes requests, so this one stays ready.
    """
    try:
        with service.database.read() as connection:
            facts = leases.facts(connection, LEASE) or {}
    except SQLAlchemyError:
        facts = {}
    trouble = facts.get("trouble")
    return Part(ok=True, detail=trouble or "is another process's")
