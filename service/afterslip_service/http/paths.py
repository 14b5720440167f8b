"""Paths that are treated apart: who may ask for them, and how much they may bring."""

from __future__ import annotations

import re

from afterslip_service.settings import Settings

SESSION = "/v1/session"
# without a token it answers yes or no only, else also why
READINESS = "/readyz"
PUBLIC = frozenset(
    {"/", "/docs", "/favicon.ico", "/healthz", "/openapi.json", READINESS, SESSION}
)
PUBLIC_FOLDER = "/dashboard/"
# the one route that takes bytes instead of JSON
RAW_PATH = "/v1/files"

SMALL = 64 * 1024
SIGN_IN = 4 * 1024
# specs, data sets, and lists of stations or groups
_LARGE = re.compile(
    r"/v1/(?:campaigns|datasets|inversions|campaigns/[^/]+/(?:sample|groups/[a-z]+))"
)


def public(path: str) -> bool:
    """Tell whether a path may be asked for without a token."""
    return path in PUBLIC or path.startswith(PUBLIC_FOLDER)


def most_bytes(path: str, settings: Settings) -> int:
    """Return how many bytes a request to a path may bring."""
    if path == RAW_PATH:
        return settings.max_upload
    if path == SESSION:
        return min(SIGN_IN, settings.max_body)
    large = _LARGE.fullmatch(path) is not None
    return settings.max_body if large else min(SMALL, settings.max_body)
