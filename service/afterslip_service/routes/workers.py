"""Workers."""

from __future__ import annotations

from fastapi import APIRouter

from afterslip_service.http.deps import CursorDep, Limit, ServiceDep, next_cursor
from afterslip_service.http.problems import responses
from afterslip_service.routes.responses import WorkerPage, WorkerResponse

router = APIRouter(prefix="/v1/workers", tags=["workers"])


@router.get("", responses=responses(422))
def list_workers(
    service: ServiceDep, after: CursorDep, limit: Limit = 200
) -> WorkerPage:
    """List the workers that the placement knows, by address."""
    known = service.placement.workers() if service.placement is not None else []
    items = [
        WorkerResponse(
            name=worker.name,
            address=worker.address,
            state=worker.state,
            slots=worker.slots,
            facts=worker.facts,
        )
        for worker in sorted(known, key=lambda worker: worker.address)
        if after is None or worker.address > after
    ][:limit]
    return WorkerPage(items=items, next=next_cursor([w.address for w in items], limit))
