"""Checksums for stores that were made by release 0.1.0, which wrote none.

Every file is compared with its manifest first; the root, which says that the store has
checksums, is written last. A crash before leaves a store of version 1, and the next
run writes the same documents again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from afterslip import integrity
from afterslip_workers.store import paths
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.check import check_campaign, shown
from afterslip_workers.store.commit import facts_of, root_of
from afterslip_workers.store.errors import StoreError
from afterslip_workers.store.findings import Expected, Finding, Report

# what does not speak against a seal
_HARMLESS = frozenset({"manifest", "extra", "unaccepted"})


@dataclass(slots=True)
class Sealed:
    """What was done.

    Attributes
    ----------
    sealed : campaigns whose stores got checksums now.
    before : campaigns whose stores had them.
    refused : why a campaign's store got none, by campaign.
    report : of the files that were compared.
    """

    sealed: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    report: Report = field(default_factory=Report)


def seal(
    backend: StoreBackend,
    expected: Expected | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Sealed:
    """Give the stores of all campaigns checksums; may be repeated.

    Parameters
    ----------
    expected : what a database knows; its manifests count.
    tell : called with the name of what is being looked at.
    """
    done = Sealed()
    for campaign in shown(backend.names(paths.CAMPAIGNS)):
        tell(f"campaign {campaign}")
        try:
            if root_of(backend, campaign).sealed:
                done.before.append(campaign)
                continue
            _seal(backend, campaign, expected, done)
        except StoreError as error:
            done.refused[campaign] = str(error)
        else:
            done.sealed.append(campaign)
    return done


def _seal(
    backend: StoreBackend, campaign: str, expected: Expected | None, done: Sealed
) -> None:
    """Compare a campaign's files, then write their checksums, those of the root last.

    Raises
    ------
    StoreError
        Something is not as it was promised, or was not promised at all.
    """
    fixed = facts_of(backend, campaign).get("files", {})
    if not fixed:
        raise StoreError("its model.json lists no files, so nothing can be compared")
    found = Report()
    groups = check_campaign(backend, campaign, expected, found)
    done.report.add(found)
    bad = [finding for finding in found.findings if finding.kind not in _HARMLESS]
    if bad:
        raise StoreError(_refusal(bad))
    root = paths.greens(campaign)
    for group, files in groups.items():
        content = integrity.write_checksums(campaign, files, group)
        backend.write(f"{root}/{integrity.group_key(group)}", content)
    backend.write(
        f"{root}/{integrity.FIXED}", integrity.write_checksums(campaign, fixed)
    )
    _sign(backend, campaign)


def _sign(backend: StoreBackend, campaign: str) -> None:
    """Write the root with its new version and checksum.

    A service may change the root's status at the same time; it is then written again
    with the newer status.
    """
    key = f"{paths.greens(campaign)}/{integrity.ROOT}"
    for _ in range(3):
        document = integrity.json_of(backend.read(key) or b"")
        attributes: dict[str, Any] = dict(document.get("attributes") or {})
        attributes["format_version"] = integrity.FORMAT_VERSION
        attributes["store_id"] = campaign
        signed = integrity.signed({**document, "attributes": attributes})
        backend.write(key, json.dumps(signed, indent=1, sort_keys=True).encode())
        if root_of(backend, campaign).sealed:
            return
    raise StoreError("its root is being written by somebody else: try again")


def _refusal(bad: list[Finding]) -> str:
    """Name what does not match, group by group."""
    groups = sorted({f.group for f in bad if f.group is not None})
    which = f"group {', '.join(map(str, groups))}: " if groups else ""
    first = bad[0]
    more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
    what = "has no manifest" if first.kind == "unproven" else f"is {first.kind}"
    return f"{which}{first.key} {what}{more}; repair it first (--repair --database …)"
