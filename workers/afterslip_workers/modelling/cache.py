"""Models kept in the store by the digest of what they were built from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afterslip_solver.model import Model
from afterslip_workers.errors import TaskError
from afterslip_workers.store import durable, model_file, paths

MODEL = "model.npz"
META = "meta.json"


def load_model(store: Path, digest: str) -> Model:
    """Read a model that was built before.

    Raises
    ------
    TaskError
        Class ``internal``: it is not in the store, or damaged there.
    """
    meta = find(store, digest)
    if meta is None:
        raise TaskError(
            "internal",
            f"model {digest} is missing from the store or damaged: "
            "submit the campaign again, which builds it anew",
        )
    return model_file.load(paths.model(store, digest) / MODEL)


def campaign_facts(store: Path, campaign: str) -> dict[str, Any]:
    """Return what a campaign was built from, its ``model.json``.

    Raises
    ------
    TaskError
        Class ``internal``: the campaign's model is not built.
    """
    facts = durable.read_json(paths.campaign(store, campaign) / "model.json")
    if not isinstance(facts, dict):
        raise TaskError("internal", f"campaign {campaign} has no model.json")
    return facts


def find(store: Path, digest: str) -> dict[str, Any] | None:
    """Return the facts of a cached model; None if it is absent or damaged."""
    folder = paths.model(store, digest)
    meta = durable.read_json(folder / META)
    if not isinstance(meta, dict) or not (folder / MODEL).is_file():
        return None
    if durable.sha256(folder / MODEL) != meta.get("sha256"):
        return None
    return meta


def get_or_build(
    store: Path, digest: str, build: Callable[[], tuple[Model, dict[str, Any]]]
) -> tuple[Model, dict[str, Any], bool]:
    """Return a model, its facts, and whether it was there already.

    What is damaged is built again; of two builders at once the first one's file
    is taken by both, so that all groups solve on one mesh.
    """
    meta = find(store, digest)
    folder = paths.model(store, digest)
    if meta is not None:
        return model_file.load(folder / MODEL), meta, True
    durable.remove_tree(folder)
    model, facts = build()
    scratch = durable.scratch_beside(folder)
    scratch.mkdir()
    try:
        model_file.save(scratch / MODEL, model)
        durable.sync_file(scratch / MODEL)
        meta = {**facts, "digest": digest, "sha256": durable.sha256(scratch / MODEL)}
        durable.write_json(scratch / META, meta)
        if durable.publish_directory(scratch, folder):
            return model, meta, False
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    meta = find(store, digest)
    if meta is None:
        raise TaskError("internal", f"model {digest} was damaged while it was written")
    return model_file.load(folder / MODEL), meta, True
