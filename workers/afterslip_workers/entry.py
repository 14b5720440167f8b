"""The only door of this room: envelopes in, receipts out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from afterslip_workers.bench import measure
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.inverting.faint import faint_sources
from afterslip_workers.inverting.size import inversion_needs
from afterslip_workers.machine import device
from afterslip_workers.machine.collector import no_collection
from afterslip_workers.machine.limit import SHARES_ENV
from afterslip_workers.messages import Manifest, Progress, failed, read_envelope
from afterslip_workers.process import supervisor
from afterslip_workers.process.supervisor import start_ahead
from afterslip_workers.store import (
    checkpoint,
    commit,
    paths,
    progress,
    reading,
    spool,
    uploads,
)
from afterslip_workers.store.backend import read_json
from afterslip_workers.store.errors import NotDeliveredError, StoreError, StoreLostError
from afterslip_workers.store.findings import Expected, Finding, Report
from afterslip_workers.store.open import is_bucket, open_store
from afterslip_workers.store.scrub import Stored
from afterslip_workers.upkeep import (
    check_store,
    repair_store,
    retract_result,
    seal_store,
)

if TYPE_CHECKING:
    import xarray as xr

    from afterslip.schemas.campaign import Campaign
    from afterslip.spec.files import StoredFiles
    from afterslip.spec.inputs import Inputs

__all__ = [
    "PRELOAD",
    "SHARES_ENV",
    "Expected",
    "Finding",
    "NotDeliveredError",
    "Report",
    "StoreError",
    "StoreLostError",
    "Stored",
    "arrange",
    "attempt_tokens",
    "check_prior",
    "check_store",
    "close_children",
    "describe_worker",
    "discard",
    "execute",
    "faint_sources",
    "files_of",
    "finish",
    "greens_digest",
    "has_manifest",
    "inversion_needs",
    "is_bucket",
    "keep_content",
    "keep_file",
    "load_engines",
    "measure",
    "open_store",
    "plan",
    "prepare",
    "probe",
    "promote",
    "reachable",
    "read_log",
    "read_manifest",
    "read_progress",
    "read_receipt",
    "repair_store",
    "request_cancel",
    "result_digest",
    "retract_result",
    "sample",
    "seal_store",
    "spool_room",
    "start_ahead",
    "sweep_checkpoints",
]


# module of the hooks of a Dask worker's life
PRELOAD = "afterslip_workers.lifecycle"


def execute(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Run one attempt; this is the function that Dask calls.

    Parameters
    ----------
    envelope : see :class:`afterslip_workers.messages.Envelope`.

    Returns
    -------
    A receipt, see :class:`afterslip_workers.messages.Receipt`. Failures are
    receipts as well; nothing is raised.
    """
    try:
        parsed = read_envelope(envelope)
    except TaskError as error:
        return failed(str(envelope.get("token", "")), error).as_json()
    try:
        return supervisor.supervise(parsed).as_json()
    except Exception as error:  # noqa: BLE001 - a worker answers whatever happens
        return failed(parsed.token, classify(error, open_store(parsed.store))).as_json()


def promote(store: str | Path, campaign: str, manifest: Manifest) -> None:
    """Move an accepted attempt into its campaign; may be repeated.

    Raises
    ------
    NotDeliveredError
        While the result waits on its worker's disk.
    StoreError
        If the manifest is not this campaign's, or a file is missing or damaged.
    StoreLostError
        While the store is away.
    """
    commit.promote(open_store(store), campaign, manifest)


def arrange(store: str | Path, campaign: str, order: Sequence[int]) -> list[int]:
    """Change the order of the sources of a campaign of which nothing is solved yet.

    Parameters
    ----------
    order : for each place in the store the number of the source in the spec.

    Returns
    -------
    The order that counts: the first that was ever asked for.
    """
    from afterslip_workers.store import order as orders

    return orders.arrange(open_store(store), campaign, order)


def discard(store: str | Path, token: str) -> None:
    """Remove everything that an attempt wrote; may be repeated."""
    commit.discard(open_store(store), token)


def finish(store: str | Path, campaign: str) -> None:
    """Mark a campaign's Green's functions as complete.

    Raises
    ------
    StoreError
        If a group is missing.
    """
    commit.finish(open_store(store), campaign)


def read_progress(store: str | Path, token: str) -> Progress | None:
    """Progress of an attempt, None before its first sign of life.

    Raises
    ------
    TaskError
        If it cannot be read, see `afterslip_workers.messages.read_progress`.
    """
    return progress.read(open_store(store), token)


def read_manifest(store: str | Path, token: str) -> Manifest | None:
    """Manifest of a stored attempt whose receipt was lost; None if not stored.

    Raises
    ------
    TaskError
        If it cannot be read, see `afterslip_workers.messages.read_manifest`.
    """
    return commit.manifest_of(open_store(store), token)


def has_manifest(store: str | Path, token: str) -> bool:
    """Tell whether an attempt stored a result, of whatever release it is."""
    return commit.manifest_json(open_store(store), token) is not None


def read_receipt(store: str | Path, token: str) -> dict[str, Any] | None:
    """Receipt of an attempt, its last file; None before its end.

    Returns
    -------
    What `execute` returned; ``stats.spooled`` says why the worker has the result yet.
    """
    found = read_json(open_store(store), f"{paths.attempt(token)}/{paths.RECEIPT}")
    return found if isinstance(found, dict) else None


def attempt_tokens(store: str | Path) -> list[str]:
    """Tokens of the attempts of which anything is in the store."""
    return [name for name in open_store(store).names(paths.ATTEMPTS) if name[0] != "."]


def prepare(store: str | Path) -> None:
    """Make a store's folders, or see that its bucket answers, else raise OSError."""
    open_store(store).prepare()


def probe(store: str | Path) -> None:
    """Write into the store; an OSError says why it cannot be written."""
    open_store(store).probe()


def reachable(store: str | Path) -> bool:
    """Tell whether the store can be read and written now."""
    return open_store(store).reachable()


def check_prior(prior: Mapping[str, Mapping[str, float]]) -> str | None:
    """Say what is wrong with the prior of an inversion; None: nothing."""
    # the solver's packages take a second to import
    from afterslip_solver.inversion import make_regulariser

    try:
        for name, parameters in prior.items():
            make_regulariser(name, parameters)
    except ValueError as error:
        return str(error)
    return None


def plan(
    campaign: Campaign,
    inputs: Inputs,
    files: StoredFiles,
    mesh_bytes: int | None = None,
    backend: str = "auto",
    *,
    trial: bool = False,
) -> dict[str, Any] | None:
    """Say what a campaign will need, by the machine of this process.

    Parameters
    ----------
    inputs : the campaign's files.
    mesh_bytes : size of the mesh's file, where the mesh is imported.
    backend : of the service; "auto" for a GPU where there is one.
    trial : mesh the model, coarser, to count elements better; takes seconds.

    Returns
    -------
    {"elements", "parts": {cause: elements}, "unknowns", "memory": {"backend", "bytes",
    "least_bytes", "parts"}, "trial"}; None where the physics' engine is not installed
    here, or cannot say.
    """
    from afterslip_workers.engines import registry

    return registry.plan(campaign, inputs, files, mesh_bytes, backend, trial=trial)


def load_engines() -> None:
    """Import every engine that is installed, which takes seconds."""
    with no_collection():
        from afterslip_workers.engines import registry

        registry.load_all()


def sweep_checkpoints(store: str | Path) -> int:
    """Remove the checkpoints that nobody came back for; return how many."""
    return checkpoint.sweep(open_store(store), time.time())


def files_of(store: str | Path, base: str | Path | None = None) -> StoredFiles:
    """Return the files that specs may name: uploads, and those below ``base``."""
    return uploads.files_of(open_store(store), base)


def keep_content(store: str | Path, content: bytes) -> str:
    """Write a content into the store and return its reference."""
    return uploads.keep(open_store(store), content)


def keep_file(store: str | Path, path: Path) -> str:
    """Copy a file into the store and return its reference."""
    return uploads.keep_file(open_store(store), path)


def read_log(store: str | Path, token: str, lines: int = 200) -> str:
    """Last lines of what an attempt printed."""
    return progress.stored_log(open_store(store), token, lines)


def request_cancel(store: str | Path, token: str) -> None:
    """Ask an attempt to stop; it ends within ten seconds."""
    progress.request_cancel(open_store(store), token)


def sample(
    store: str | Path,
    campaign: str,
    x: ArrayLike,
    y: ArrayLike,
    times_s: Sequence[float],
) -> xr.DataArray:
    """Green's functions at points, as `GreensStore.sample_with_error` returns them.

    Parameters
    ----------
    x, y, times_s : (n_point,) float64, m, local frame; s since the event.

    Raises
    ------
    DamagedError
        A file that it needs is missing or damaged.
    """
    from afterslip.archive import GreensStore

    opened = GreensStore(reading.greens(open_store(store), campaign))
    points = np.atleast_1d(x).astype(np.float64), np.atleast_1d(y).astype(np.float64)
    return opened.sample_with_error(*points, np.asarray(times_s, dtype=np.float64))


def places(store: str | Path, campaign: str) -> dict[str, list[Any]] | None:
    """Where each unit source of a campaign lies; see `commit.places`."""
    return commit.places(open_store(store), campaign)


def greens_digest(store: str | Path, campaign: str, key: str) -> str | None:
    """SHA-256 of a file of ``greens.zarr``; None where the store holds none.

    Raises
    ------
    DamagedError
        The file is missing or damaged.
    """
    return reading.greens_digest(open_store(store), campaign, key)


def result_digest(
    store: str | Path, campaign: str, inversion: str, name: str
) -> str | None:
    """SHA-256 of a file of an inversion's result; None where there is none.

    Raises
    ------
    DamagedError
        The file is missing or damaged.
    """
    return reading.result_digest(open_store(store), campaign, inversion, name)


def result_files(store: str | Path, campaign: str, inversion: str) -> dict[str, str]:
    """Return the SHA-256 by name of an accepted inversion's files.

    Raises
    ------
    DamagedError
        The manifest, which has them, is missing or damaged.
    """
    return reading.result_files(open_store(store), campaign, inversion)


def spool_room() -> tuple[Path, int]:
    """Return the folder in which results wait on this machine, and its free bytes.

    Raises
    ------
    OSError
        If nothing can be written there.
    """
    return spool.room()


def describe_worker() -> dict[str, Any]:
    """Say what the machine under this worker is."""
    return device.describe()


def close_children() -> None:
    """Kill the computing processes of this process."""
    supervisor.pool.close()
    supervisor.writers.close()
