"""The application: routes, dispatcher and event hub around one database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool

from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion
from afterslip.schemas.observation import Dataset
from afterslip_service.db import migrate
from afterslip_service.db.session import Database
from afterslip_service.placement.base import Placement
from afterslip_service.reconcile.dispatcher import Dispatcher
from afterslip_service.routes import (
    campaigns,
    datasets,
    events,
    files,
    greens,
    groups,
    health,
    inversions,
    page,
    problems,
    sample,
    workers,
)
from afterslip_service.routes.deps import Service
from afterslip_service.routes.guard import Guard
from afterslip_service.routes.stream import Hub
from afterslip_service.settings import Settings

MakePlacement = Callable[[Settings], Placement]
from afterslip_workers import entry
ROUTERS = (
    campaigns, groups, events, greens, sample, files,
    datasets, inversions, workers, health, page,
)  # fmt: skip
REF = "#/components/schemas/{model}"


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
    chosen = settings or Settings()

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
    )
    database = Database(chosen.database)
    app.state.service = Service(chosen, database, Hub(database))
    app.state.placement = placement
    problems.install(app)
    for module in ROUTERS:
        app.include_router(module.router)
    page.mount(app)
    app.add_middleware(Guard, settings=chosen)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def bring_up(app: FastAPI) -> None:
    """Bring up schema, store, placement and dispatcher, in this order.

    The server does it on start; whoever wants to see what goes wrong does it before.
    """
    service: Service = app.state.service
    placement: MakePlacement | None = app.state.placement
    migrate.upgrade(service.database)
    entry.prepare(service.settings.store)
    service.up = True
    if placement is None:
        return
    service.placement = placement(service.settings)
    dispatcher = Dispatcher(service.database, service.placement, service.settings)
    service.placement.wake = dispatcher.wake
    dispatcher.context.told = service.hub.wake
    service.dispatcher = dispatcher
    dispatcher.start()


def bring_down(app: FastAPI) -> None:
    """Stop dispatcher, placement and database; may be repeated."""
    service: Service = app.state.service
    if service.dispatcher is not None:
        service.dispatcher.stop()
    if service.placement is not None:
        service.placement.close()
    service.database.close()


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return OpenAPI with the specs' own schemas, whose checks are not FastAPI's."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
        )
        known = schema["components"]["schemas"]
        spec = Campaign.model_json_schema(ref_template=REF)
        request = Inversion.model_json_schema(ref_template=REF)
        request["properties"]["campaign"] = {"type": "string"}
        request["required"] = [*request.get("required", []), "campaign"]
        data = Dataset.model_json_schema(ref_template=REF)
        data["properties"]["csv"] = {"type": "string"}
        data["required"] = ["name"]
        points = sample.SampleRequest.model_json_schema(ref_template=REF)
        for part in (spec, request, data, points):
            known |= part.pop("$defs", {})
        known |= {"CampaignSpec": spec, "InversionRequest": request}
        known |= {"DatasetRequest": data, "SampleRequest": points}
        app.openapi_schema = schema
    return app.openapi_schema
