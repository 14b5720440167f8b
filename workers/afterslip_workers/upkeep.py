"""Check, repair, seal and retract what a store holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from afterslip_workers.messages import Manifest
from afterslip_workers.store import check, repair, retract, seal
from afterslip_workers.store.findings import Expected, Report
from afterslip_workers.store.open import open_store


def check_store(
    store: str | Path,
    expected: Expected | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Compare every file of a store with what was promised.

    Parameters
    ----------
    expected : what a database knows; without it the store speaks for itself.
    tell : called with the name of what is being looked at.

    Raises
    ------
    OSError
        If the store cannot be read.
    """
    return check.check(open_store(store), expected, tell)


def repair_store(
    store: str | Path, report: Report, expected: Expected | None = None
) -> dict[str, str]:
    """Repair what the store itself can repair; return by key what was done.

    Parameters
    ----------
    expected : what the database says now, from which manifests are written anew.
    """
    # imported late: it needs the solver and zarr
    from afterslip_workers.tasks.coordinates import rebuild

    return repair.repair(open_store(store), report, expected, rebuild=rebuild)


def seal_store(
    store: str | Path,
    expected: Expected | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> seal.Sealed:
    """Add checksums to the stores of campaigns that release 0.1.0 made.

    Parameters
    ----------
    expected : what a database knows; its manifests count.
    tell : called with the name of what is being looked at.
    """
    return seal.seal(open_store(store), expected, tell)


def retract_result(
    store: str | Path,
    campaign: str,
    manifest: Manifest,
    still: Callable[[], bool] = lambda: True,
) -> None:
    """Remove the files of an accepted group or inversion that are damaged.

    Parameters
    ----------
    still : asked before each removal; False once the files may be somebody else's.

    Raises
    ------
    StoreError
        If the campaign's store cannot be read.
    OSError
        If the store is away.
    """
    retract.retract(open_store(store), campaign, manifest, still)
