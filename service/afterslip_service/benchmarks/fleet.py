"""Groups of one campaign on one worker and on several, each with its own device."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from afterslip_common.record import Record, record
from afterslip_service.benchmarks.phases import by_phase

STORE, MODELS = "store", "models"
# a group has four functions, two of a patch
_PER_GROUP = 2


@dataclass(frozen=True, slots=True)
class _Run:
    """One campaign on some workers; times in s.

    ``span`` is from the first attempt's start to the last one's end, ``busy`` that of
    a group in the middle, ``phases`` what that went to, ``wall`` from the request to
    the closed store.
    """

    wall: float
    span: float
    busy: float
    groups: int
    unknowns: int
    phases: dict[str, float]


def records(
    spec: dict[str, Any],
    base: Path,
    out: Path,
    counts: Sequence[int] = (1, 4),
    groups: int = 16,
    timeout_s: float = 600.0,
    keep: Callable[[list[Record]], None] = lambda _: None,
) -> list[Record]:
    """Run the same groups on each number of workers, after each has a warm model.

    Parameters
    ----------
    spec : see `campaign_spec`; its sources are replaced. base : folder of its files.
    out : folder for the services; models in its ``store`` are taken.
    counts : numbers of workers, in the order of the runs; efficiencies are against
        one, where that is among them. groups : of each run.
    keep : given all records so far after each.
    """
    found: dict[int, _Run] = {}
    for count in counts:
        found[count] = _run(spec, base, out, count, groups, timeout_s)
        keep(_described(found))
    return _described(found)


def _described(found: dict[int, _Run]) -> list[Record]:
    one = found.get(1)
    records = []
    for count, run in found.items():
        note = (
            f"{run.unknowns} unknowns, {run.groups} groups on {count} workers with "
            "warm models"
        )
        name = f"fleet_{count}"
        phases_s = ", ".join(f"{phase} {s:.2g} s" for phase, s in run.phases.items())
        span = one.span / count if one else None
        wall = one.wall / count if one else None
        busy = one.busy if one else None
        records += [
            record(f"{name}_span_s", run.span, "s", span, note),
            record(
                f"{name}_group_s", run.busy, "s", busy, f"{note}, median: {phases_s}"
            ),
            record(f"{name}_wall_s", run.wall, "s", wall, note),
        ]
        if one and count > 1:
            share = one.span / (count * run.span)
            text = f"{note}; first start to last end, against one worker"
            records.append(record(f"{name}_efficiency", share, "1", 0.95, text))
    return records


def _run(
    spec: dict[str, Any],
    base: Path,
    out: Path,
    count: int,
    groups: int,
    timeout_s: float,
) -> _Run:
    from afterslip.client import Client

    folder = out / f"workers-{count}"
    models = out / STORE / MODELS
    if models.is_dir():
        shutil.copytree(models, folder / STORE / MODELS)
    with Client.embedded(folder, workers=count) as client:
        # other patches than those measured: nothing of them may be reused
        _solve(client, spec, base, (count * _PER_GROUP, 1), timeout_s)
        return _solve(client, spec, base, (groups, _PER_GROUP), timeout_s)


def _solve(
    client: Any,
    spec: dict[str, Any],
    base: Path,
    patches: tuple[int, int],
    timeout_s: float,
) -> _Run:
    from afterslip.schemas.campaign import Campaign

    along, down = patches
    sources = {**spec["sources"], "along_strike": along, "down_dip": down}
    named = {**spec, "sources": sources, "name": f"fleet-{along}-{down}"}
    begin = time.perf_counter()
    handle = client.submit(Campaign.from_dict(named, base=base))
    handle.wait(progress=False, timeout=timeout_s)
    wall = time.perf_counter() - begin
    groups = handle.groups()
    details = [handle.group(group["index"]) for group in groups]
    attempts = [attempt for detail in details for attempt in detail["attempts"]]
    started = min(_moment(attempt["started_at"]) for attempt in attempts)
    finished = max(_moment(attempt["finished_at"]) for attempt in attempts)
    phases_s = by_phase([attempt["stats"]["phases"] for attempt in attempts])
    return _Run(
        wall=wall,
        span=(finished - started).total_seconds(),
        busy=float(np.median([group["seconds"] for group in groups])),
        groups=len(groups),
        phases={name: float(np.median(each)) for name, each in phases_s.items()},
        unknowns=int(handle.refresh().data["model"]["n_unknowns"]),
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
