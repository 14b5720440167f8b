"""Workers."""

from __future__ import annotations

from fastapi import APIRouter

from afterslip_service.routes.deps import ServiceDep
from afterslip_service.routes.shapes import WorkerPage, WorkerShape

router = APIRouter(prefix="/v1/workers", tags=["workers"])


@router.get("")
def list_workers(service: ServiceDep) -> WorkerPage:
    """List the workers that the placement knows."""
    known = service.placement.workers() if service.placement is not None else []
    items = [
        WorkerShape(
            name=worker.name,
            address=worker.address,
            state=worker.state,
            slots=worker.slots,
            facts=worker.facts,
        )
        for worker in known
    ]
    return WorkerPage(items=items)
