"""The application: routes, dispatcher and event hub around one database."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import Depends, FastAPI
from starlette.concurrency import run_in_threadpool

from afterslip_common.observe import telemetry
from afterslip_service import store_use
from afterslip_service.db import migrate
from afterslip_service.db.notify import Listener
from afterslip_service.db.session import Database
from afterslip_service.http import (
    api_page,
    contract,
    page,
    problems,
)
from afterslip_service.http.access import Access, authorize
from afterslip_service.http.body import Bodies
from afterslip_service.http.deps import Service
from afterslip_service.http.guard import Guard
from afterslip_service.http.request_id import RequestId
from afterslip_service.http.stream import Hub
from afterslip_service.placement.base import Placement
from afterslip_service.placement.logged import LoggedPlacement
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.routes import (
    attempts,
    bulk,
    campaigns,
    datasets,
    events,
    explain,
    files,
    greens,
    groups,
    health,
    inversions,
    metrics,
    patch,
    plan,
    sample,
    session,
    tokens,
    usage,
    webhooks,
    workers,
)
from afterslip_service.settings import Settings, read_settings
from afterslip_workers import entry

MakePlacement = Callable[[Settings], Placement]
ROUTERS = (
    campaigns, plan, patch, bulk, explain, groups, attempts, events, greens, sample,
    files, datasets, inversions, workers, usage, tokens, webhooks, session, health,
    metrics, page, api_page,
)  # fmt: skip


def cluster(settings: Settings) -> Placement:
    """Return the placement that the settings name; Dask is imported here only."""
    from afterslip_service.placement.cluster import Cluster

    return Cluster(settings.scheduler, settings.workers)


def create_app(
    settings: Settings | None = None,
    placement: MakePlacement | None = cluster,
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    settings : from the environment if None.
    placement : makes the placement on start; None for a service that answers
        requests and leaves the dispatching to another process.
    """
    chosen = settings or read_settings()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service: Service = app.state.service
        if not service.up:
            await run_in_threadpool(bring_up, app)
        await service.hub.start()
        try:
            yield
        finally:
            await service.hub.close()
            await run_in_threadpool(bring_down, app)

    app = FastAPI(
        title="afterslip",
        version=version("afterslip"),
        summary="Green's functions of viscoelastic deformation, and slip from them",
        lifespan=lifespan,
        # no route can forget it
        dependencies=[Depends(authorize)],
        # their pages would load scripts from elsewhere; ours is http/api_page.py
        docs_url=None,
        redoc_url=None,
    )
    database = Database(chosen.database)
    app.state.service = Service(chosen, database, Hub(database))
    app.state.placement = placement
    problems.install(app)
    for module in ROUTERS:
        app.include_router(module.router)
    page.mount(app)
    # the last one added is the first that a request meets
    app.add_middleware(Bodies, settings=chosen)
    app.add_middleware(Access, settings=chosen)
    app.add_middleware(Guard, settings=chosen)
    app.add_middleware(RequestId)
    bodies = {"SampleRequest": sample.SampleRequest}
    app.openapi = lambda: contract.openapi(app, bodies)  # type: ignore[method-assign]
    return app


def bring_up(app: FastAPI) -> None:
    """Bring up schema, store, placement and dispatcher, in this order.

    The server does it on start; a command that reports what goes wrong does it before.
    """
    service: Service = app.state.service
    placement: MakePlacement | None = app.state.placement
    telemetry.start("api")
    migrate.upgrade(service.database)
    entry.prepare(service.settings.store)
    service.up = True
    service.listener = Listener(service.database, service.wake)
    service.listener.start()
    if placement is not None:
        _dispatch(service, placement)
    # the first plan would wait for the imports; a request that comes meanwhile does.
    # Beside them the workers of a cluster would be slower to start
    threading.Thread(target=entry.load_engines, name="engines", daemon=True).start()


def _dispatch(service: Service, placement: MakePlacement) -> None:
    """Start the placement, and the dispatcher that gives it work."""
    service.store_use = store_use.use(service.settings.store, service.database)
    service.placement = LoggedPlacement(placement(service.settings))
    dispatcher = Dispatcher(service.database, service.placement, service.settings)
    service.placement.wake = dispatcher.wake
    dispatcher.context.after_commit = service.hub.wake
    service.dispatcher = dispatcher
    dispatcher.start()


def bring_down(app: FastAPI) -> None:
    """Stop dispatcher, placement and database; may be repeated."""
    service: Service = app.state.service
    if service.listener is not None:
        service.listener.stop()
    if service.dispatcher is not None:
        service.dispatcher.stop()
    if service.placement is not None:
        service.placement.close()
    if service.store_use is not None:
        service.store_use.close()
    service.database.close()
    telemetry.stop()
