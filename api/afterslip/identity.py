"""Canonical form and content digest: the same thing has the same name everywhere.

Client, service and workers must agree on it, so it is written down here once.
Two specs are the same when they mean the same: order of keys, spelled-out defaults,
``1e19`` or ``1.0e+19``, ``10 yr`` or ``3652.5 d`` and names of files make no
difference; contents of files do.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

from afterslip.errors import one_problem
from afterslip.physics.registry import DEFAULT, find
from afterslip.schemas.base import Schema
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.forward import Forward
from afterslip.schemas.values import SHA256, Duration
from afterslip.spec.files import Files
from afterslip.spec.references import refs, with_content_refs


def plain(value: Any) -> Any:
    """Return JSON-able data in canonical form, which parses to an equal spec.

    Times become seconds (``"315576000.0 s"``), absent values are left out and
    negative zero is zero.

    Raises
    ------
    ValueError
        A number is not finite, or a value is not JSON-able.
    """
    if isinstance(value, Schema):
        implied = value.implied
        return {
            key: plain(item)
            for key, item in value.named()
            if item is not None and not (key in implied and implied[key] == item)
        }
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Duration):
        return f"{float(value) + 0.0!r} s"
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number that is not finite has no canonical form")
        return float(value) + 0.0
    if isinstance(value, str):
        return str(value)
    raise ValueError(f"{type(value).__name__} has no canonical form")


def canonical(obj: Any) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, shortest floats, UTF-8.

    Parameters
    ----------
    obj : spec, part of one, or plain data.
    """
    text = json.dumps(
        plain(obj),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
    return text.encode()


def digest(obj: Any) -> str:
    """Return ``sha256:…`` of the canonical form."""
    return "sha256:" + hashlib.sha256(canonical(obj)).hexdigest()


def canonical_spec(
    spec: Campaign | Forward, files: Files | None = None
) -> dict[str, Any]:
    """Return a spec as plain canonical data in which every file is a digest.

    Parameters
    ----------
    files : where the spec's files are; not needed where all references are digests.

    Raises
    ------
    SpecError
        A file cannot be read.
    """
    found: dict[str, Any] = plain(_by_content(spec, files))
    return found


def campaign_digest(campaign: Campaign, files: Files | None = None) -> str:
    """Return the digest of a whole campaign, files by content."""
    whole = _by_content(campaign, files)
    return digest(plain(whole) | _branches(whole))


def model_digest(spec: Campaign | Forward, files: Files | None = None) -> str:
    """Return the digest of geometry, materials, mesh and boundary.

    Campaigns that differ in sources, times, solver, stations or data share a model,
    unless its mesh is to have an accuracy, which sources and curve then decide on.
    """
    if spec.model.mesh.accuracy is None:
        whole = _by_content(spec, files)
        return digest(plain(whole.model) | _branches(whole))
    if isinstance(spec, Campaign):
        return greens_digest(spec, files)
    whole = _by_content(spec, files)
    return digest(plain(whole) | _branches(whole))


def greens_digest(campaign: Campaign, files: Files | None = None) -> str:
    """Return the digest of what changes the numbers of the Green's functions.

    That is the model, the sources and what the physics says of the rest. Left out:
    name, stations, data sets and inversions, which only read the responses.
    """
    whole = _by_content(campaign, files)
    facts = {"model": plain(whole.model), "sources": plain(whole.sources)}
    facts |= _branches(whole)
    if whole.physics != DEFAULT:
        facts["physics"] = whole.physics
    return digest(facts | find(whole.physics).numbers(whole))


def _branches(spec: Campaign | Forward) -> dict[str, Any]:
    """Return what the formulas of installed rheologies give; nothing without any."""
    bodies = [*spec.model.layers, *spec.model.bodies]
    added = [body.rheology.added for body in bodies if body.rheology is not None]
    found = [law.sampled() for laws in added for law in laws.values()]
    return {"branches": found} if found else {}


def _by_content(spec: Any, files: Files | None) -> Any:
    named = {path: ref for path, ref in refs(spec).items() if not SHA256.match(ref)}
    if not named:
        return spec
    if files is None:
        path, ref = next(iter(named.items()))
        raise one_problem(path, ref, "has no content digest yet", "give the files")
    return with_content_refs(spec, files)
