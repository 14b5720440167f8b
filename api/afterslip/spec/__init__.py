"""Specs from files and plain data.

A campaign has ``sources``, a forward run has ``slip`` instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afterslip.schemas.campaign import Campaign
from afterslip.schemas.document import load, loads
from afterslip.schemas.forward import Forward

__all__ = ["load", "loads", "parse", "parse_campaign", "parse_forward", "parse_stored"]


def parse_campaign(data: Any, base: str | Path | None = None) -> Campaign:
    """Return a campaign from plain data.

    Parameters
    ----------
    data : mapping as `load` gives it.
    base : folder of the files that it names.

    Raises
    ------
    SpecError
        With every problem found, each with path, value and hint.
    """
    return Campaign.from_dict(data, base)


def parse_stored(data: Any) -> Campaign:
    """Return the campaign of a spec that a service has stored.

    One of 0.1.0 does not say `sources.edges`: its B-splines are clamped.

    Raises
    ------
    SpecError
        As `parse_campaign`.
    """
    sources = data.get("sources") if isinstance(data, dict) else None
    # a list of them is younger than edges
    if isinstance(sources, dict) and sources.get("shape") == "bspline":
        clamped = dict.fromkeys(("top", "bottom", "start", "end"), "clamped")
        data = {**data, "sources": {"edges": clamped, **sources}}
    return parse_campaign(data)


def parse_forward(data: Any, base: str | Path | None = None) -> Forward:
    """Return a forward run from plain data; as `parse_campaign`."""
    return Forward.from_dict(data, base)


def parse(data: Any, base: str | Path | None = None) -> Campaign | Forward:
    """Return whichever of the two the data are: a forward run has ``slip``."""
    if isinstance(data, dict) and "slip" in data:
        return parse_forward(data, base)
    return parse_campaign(data, base)
