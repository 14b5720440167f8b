"""The order of the sources in a campaign's store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr

from afterslip import integrity
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend, read_json, write_json
from afterslip_workers.store.commit import facts_of, root_of
from afterslip_workers.store.errors import StoreError


def arrange(backend: StoreBackend, campaign: str, order: Sequence[int]) -> list[int]:
    """Change the order of the sources in a store in which nothing is solved yet.

    May be repeated, also after a crash half-way: the order is always relative
    to the one in which the spec makes its sources. The first order ever asked for is
    recorded and counts: a dispatcher that was suspended here, and wakes when groups
    are solved in the order of its successor, changes nothing.

    Parameters
    ----------
    order : for each place in the store the number of the source in the spec.

    Returns
    -------
    The order that counts.
    """
    noted = paths.model_facts(campaign)
    chosen = _recorded(backend, campaign, [int(number) for number in order])
    facts = facts_of(backend, campaign) if backend.size(noted) is not None else None
    as_made = list(range(len(chosen)))
    if facts is None or facts.get("order", as_made) == chosen:
        return chosen
    root = paths.greens(campaign)
    group: Any = zarr.open_group(backend.zarr(root), mode="r+")
    # columns of the sources themselves, by the arrays that hold them
    columns = {f"source_{name}": values for name, values in facts["table"].items()}
    for name, column in columns.items():
        values = np.array(column)[chosen]
        group[name][...] = values.astype(group[name].dtype)
    names = [n for n in facts.get("files", {}) if n.partition("/")[0] in columns]
    changed = {name: backend.sha256(f"{root}/{name}") for name in names}
    facts["files"] = {**facts.get("files", {}), **changed}
    facts["order"] = chosen
    if root_of(backend, campaign).sealed:
        content = integrity.write_checksums(campaign, facts["files"])
        backend.write(f"{root}/{integrity.FIXED}", content)
    recorded = paths.accepted_manifest(campaign, "model")
    manifest = read_json(backend, recorded)
    if isinstance(manifest, dict) and "files" in manifest:
        write_json(backend, recorded, {**manifest, "files": facts["files"]})
    # last: it says that all of this is done
    write_json(backend, noted, facts)
    return chosen


def _recorded(backend: StoreBackend, campaign: str, order: list[int]) -> list[int]:
    """Record an order unless there is one; return the one that counts."""
    key = paths.order(campaign)
    if backend.create(key, json.dumps(order).encode()):
        return order
    found = read_json(backend, key)
    if not isinstance(found, list) or sorted(found) != sorted(order):
        raise StoreError(f"{key} is not an order of {len(order)} sources")
    return found
