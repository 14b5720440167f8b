"""The dashboard: a page that uses nothing but the public API."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

ROOT = Path(str(files("afterslip_service"))) / "dashboard"
POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self'; "
    "frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
)

router = APIRouter(include_in_schema=False)


@router.get("/")
async def page() -> FileResponse:
    """Serve the page."""
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    return FileResponse(ROOT / "index.html", media_type="text/html", headers=headers)


@router.get("/favicon.ico")
async def icon() -> FileResponse:
    """Serve the icon also where browsers look for it unasked."""
    return FileResponse(ROOT / "icon.svg", media_type="image/svg+xml")


def mount(app: FastAPI) -> None:
    """Serve the page's modules and styles."""
    app.mount("/dashboard", StaticFiles(directory=ROOT), name="dashboard")
