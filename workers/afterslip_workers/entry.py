"""The only door of this room: envelopes in, receipts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from afterslip_workers import device, progress, supervisor
from afterslip_workers.envelope import VERSION, failed, parse
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.store import commit, paths
from afterslip_workers.store.manifest import StoreError

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "VERSION",
    "StoreError",
    "close_children",
    "describe_worker",
    "discard",
    "execute",
    "finish",
    "promote",
    "read_log",
    "read_manifest",
    "read_progress",
    "request_cancel",
    "sample",
]


def execute(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Run one attempt; this is the function that Dask calls.

    Parameters
    ----------
    envelope : see :class:`afterslip_workers.envelope.Envelope`.

    Returns
    -------
    A receipt, see :class:`afterslip_workers.envelope.Receipt`. Failures are
    receipts as well; nothing is raised.
    """
    try:
        parsed = parse(envelope)
    except TaskError as error:
        return failed(str(envelope.get("token", "")), error).as_json()
    try:
        return supervisor.supervise(parsed).as_json()
    except Exception as error:  # noqa: BLE001 - a worker answers whatever happens
        return failed(parsed.token, classify(error)).as_json()


def promote(store: str | Path, campaign: str, manifest: Mapping[str, Any]) -> None:
    """Move an accepted attempt into its campaign; may be repeated.

    Raises
    ------
    StoreError
        If the manifest is not this campaign's, or a file is missing or damaged.
    """
    commit.promote(Path(store), campaign, dict(manifest))


def discard(store: str | Path, token: str) -> None:
    """Remove everything that an attempt wrote; may be repeated."""
    commit.discard(Path(store), token)


def finish(store: str | Path, campaign: str) -> None:
    """Mark a campaign's Green's functions as complete.

    Raises
    ------
    StoreError
        If a group is missing.
    """
    commit.finish(Path(store), campaign)


def read_progress(store: str | Path, token: str) -> dict[str, Any] | None:
    """Progress of an attempt, None before its first sign of life.

    Returns
    -------
    {"token", "phase", "solves_done", "solves_expected", "residual",
    "lane_residuals", "updated"}; ``updated`` in s since 1970. It is rewritten at
    least every 2 s while the attempt lives.
    """
    return progress.read(paths.attempt(Path(store), token))


def read_manifest(store: str | Path, token: str) -> dict[str, Any] | None:
    """Manifest of a stored attempt whose receipt was lost; None if not stored."""
    return commit.manifest_of(Path(store), token)


def read_log(store: str | Path, token: str, lines: int = 200) -> str:
    """Last lines of what an attempt printed."""
    return progress.log_tail(paths.attempt(Path(store), token), lines)


def request_cancel(store: str | Path, token: str) -> None:
    """Ask an attempt to stop; it ends within ten seconds."""
    progress.request_cancel(paths.attempt(Path(store), token))


def sample(
    store: str | Path,
    campaign: str,
    x: ArrayLike,
    y: ArrayLike,
    times_s: Sequence[float],
) -> xr.DataArray:
    """Displacement at points of the ground surface, without any solve.

    Parameters
    ----------
    x, y : (n_point,) float64, m, local frame.
    times_s : s since the event.

    Returns
    -------
    (source, time, station, component) float64, m per m of slip.
    """
    from afterslip.archive import GreensStore

    opened = GreensStore(paths.greens(Path(store), campaign))
    points = np.atleast_1d(x).astype(np.float64), np.atleast_1d(y).astype(np.float64)
    return opened.sample(*points, np.asarray(times_s, dtype=np.float64))


def describe_worker() -> dict[str, Any]:
    """Say what the machine under this worker is."""
    return device.describe()


def close_children() -> None:
    """Kill the computing processes of this process."""
    supervisor.pool.close()
