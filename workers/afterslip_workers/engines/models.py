"""Models cached in the store by the digest of what they were built from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from afterslip.error_class import ErrorClass
from afterslip.schemas.campaign import Campaign
from afterslip.spec.files import Files
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.base import Built, Engine, Phase
from afterslip_workers.errors import TaskError
from afterslip_workers.machine.model_cache import ModelCache
from afterslip_workers.store import durable, paths
from afterslip_workers.store.backend import StoreBackend, read_json
from afterslip_workers.store.commit import facts_of
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.models import META, described, file_of, intact


class ModelFile(Protocol):
    """How an engine writes its models."""

    def save(self, path: Path, model: Any) -> None:
        """Write a model; bit for bit what `load` returns."""

    def load(self, path: Path) -> Any:
        """Read a model."""


def load_model(backend: StoreBackend, digest: str, form: ModelFile) -> Any:
    """Read a model that was built before.

    Raises
    ------
    TaskError
        Class ``internal``: it is not in the store, or damaged there.
    """
    stored = _stored(backend, digest, form)
    if stored is None:
        raise TaskError(
            ErrorClass.INTERNAL, f"model {digest} is missing from the store or damaged"
        )
    return stored.model


def campaign_model(
    engine: Engine,
    backend: StoreBackend,
    spec: Campaign,
    files: Files,
    facts: Mapping[str, Any],
    phase: Phase,
    max_elements: int | None = None,
) -> Any:
    """Return the model of a campaign, built again where it is missing or damaged.

    Parameters
    ----------
    files : that the spec may name.
    facts : the campaign's ``model.json``.
    phase : called with what begins.
    max_elements : as in `Engine.build`.

    Raises
    ------
    TaskError
        Class ``internal``: it came out differently, so that no result on it would
        fit what the campaign has.
    """
    built = engine.build(
        spec, lambda: resolve(spec, files), files, backend, phase, max_elements
    )
    if _mesh_of(built.facts) != _mesh_of(facts):
        raise TaskError(
            ErrorClass.INTERNAL,
            f"model {built.digest} was built again, perhaps by another release, and "
            "its mesh is not the one that the campaign began with: submit it again",
        )
    return built.model


def keep_for_groups(warm: ModelCache, built: Built) -> None:
    """Keep a model in memory for the first group that this process solves on it."""
    warm.put(f"model {built.digest}", built)


def just_built(warm: ModelCache, facts: Mapping[str, Any]) -> Built | None:
    """Return the model of `keep_for_groups`, if it is the campaign's; once.

    Parameters
    ----------
    facts : the campaign's ``model.json``.
    """
    built: Built | None = warm.take(f"model {facts['digest']}")
    if built is None or _mesh_of(built.facts) != _mesh_of(facts):
        return None
    return built


def _mesh_of(facts: Mapping[str, Any]) -> str:
    """Return what differs between two meshes of the same spec."""
    known = [facts.get(name) for name in ("n_unknowns", "n_elements", "quality")]
    return json.dumps(known, sort_keys=True)


def _stored(backend: StoreBackend, digest: str, form: ModelFile) -> Built | None:
    """Read a model; None if it is absent or damaged.

    Gigabytes take seconds to be read and as long to be checked, so both are done at
    once, and what was read is given away only after the check.
    """
    meta = described(backend, digest)
    if meta is None:
        return None
    with ThreadPoolExecutor(1) as beside:
        whole = beside.submit(intact, backend, digest, meta)
        try:
            with backend.local(file_of(digest, meta)) as path:
                model = form.load(path)
        except Exception:
            if whole.result():
                raise
            return None
    return Built(model, digest, meta, True) if whole.result() else None


def campaign_facts(backend: StoreBackend, campaign: str) -> dict[str, Any]:
    """Return what a campaign was built from, its ``model.json``.

    Raises
    ------
    TaskError
        Class ``internal``: the campaign's model is not built; ``other_release``:
        another one has described it.
    """
    try:
        return facts_of(backend, campaign)
    except StoreError as error:
        if isinstance(error.__cause__, TaskError):
            raise error.__cause__ from None
        raise TaskError(ErrorClass.INTERNAL, str(error)) from error


def get_or_build(
    backend: StoreBackend,
    digest: str,
    form: ModelFile,
    build: Callable[[], tuple[Any, dict[str, Any]]],
) -> Built:
    """Return a model with its facts.

    What is damaged is built again; of two builders at once the first one's file
    is taken by both, so that all groups solve on one mesh.
    """
    stored = _stored(backend, digest, form)
    if stored is not None:
        return stored
    if read_json(backend, f"{paths.model(digest)}/{META}") is not None:
        backend.remove(paths.model(digest))
    model, facts = build()
    meta: dict[str, Any] = {**facts, "digest": digest}

    def name(path: Path) -> str:
        content = durable.sha256(path)
        # named by its content, so that it may be written beside another builder's
        meta.update(sha256=content, file=f"{content}.npz")
        return str(meta["file"])

    backend.add(paths.model(digest), lambda path: form.save(path, model), name)
    text = json.dumps(meta, indent=1, sort_keys=True).encode()
    if backend.create(f"{paths.model(digest)}/{META}", text):
        return Built(model, digest, meta, False)
    ours, stored = file_of(digest, meta), _stored(backend, digest, form)
    if stored is None:
        raise TaskError(
            ErrorClass.INTERNAL, f"model {digest} was damaged while it was written"
        )
    if file_of(digest, stored.facts) != ours:
        backend.remove(ours)
    return stored
