"""Green's functions of viscoelastic earthquake deformation, and slip from them.

The face of the package: what stands in ``__all__`` and nothing else. Each name is
imported when it is first used, so that ``import afterslip`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from afterslip.version import __version__

if TYPE_CHECKING:
    from afterslip.archive import open_greens
    from afterslip.client import (
        ApiError,
        AsyncClient,
        CampaignError,
        Client,
        NoServerError,
    )
    from afterslip.errors import AfterslipError, SpecError
    from afterslip.report import write_report
    from afterslip.result import open_result
    from afterslip.schemas.campaign import Campaign

_HOMES = {
    "AfterslipError": "afterslip.errors",
    "ApiError": "afterslip.client",
    "AsyncClient": "afterslip.client",
    "Campaign": "afterslip.schemas.campaign",
    "CampaignError": "afterslip.client",
    "Client": "afterslip.client",
    "NoServerError": "afterslip.client",
    "SpecError": "afterslip.errors",
    "open_greens": "afterslip.archive",
    "open_result": "afterslip.result",
    "write_report": "afterslip.report",
}

__all__ = [
    "AfterslipError",
    "ApiError",
    "AsyncClient",
    "Campaign",
    "CampaignError",
    "Client",
    "NoServerError",
    "SpecError",
    "__version__",
    "open_greens",
    "open_result",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
