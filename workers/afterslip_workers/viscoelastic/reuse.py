"""Green's functions that another campaign has stored, taken instead of solved."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from afterslip import integrity
from afterslip.archive import (
    StationTable,
    SurfaceInterpolator,
    group_arrays,
)
from afterslip.errors import ArchiveError
from afterslip.units import YEAR
from afterslip_common.curve import spectral_weights, step_weights
from afterslip_workers.store import paths, reading
from afterslip_workers.store.backend import StoreBackend, read_json, write_json
from afterslip_workers.store.commit import chunk_key, root_of
from afterslip_workers.store.errors import StoreError
from afterslip_workers.viscoelastic.template import Template

log = logging.getLogger(__name__)
Float = NDArray[np.float64]
Lane = dict[str, Any]

# what a lane is good for, from the plan
COVERS = ("until", "tolerance", "time_tolerance")
# responses are stored in single precision, which moves the figures a little
_ROUNDING = 1.01

# arrays of the sources themselves, by the column of the table that they hold
COLUMNS = {
    "source_fault": "fault",
    "source_component": "component",
    "source_patch": "patch",
    "source_position": "position",
    "source_area": "area",
    "source_rigidity": "rigidity",
}


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
    facts = read_json(backend, noted)
    as_made = list(range(len(chosen)))
    if not isinstance(facts, dict) or facts.get("order", as_made) == chosen:
        return chosen
    root = paths.greens(campaign)
    group: Any = zarr.open_group(backend.zarr(root), mode="r+")
    for name, column in COLUMNS.items():
        values = np.array(facts["table"][column])[chosen]
        group[name][...] = values.astype(group[name].dtype)
    names = [n for n in facts.get("files", {}) if n.partition("/")[0] in COLUMNS]
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a lane must be good for.

    Attributes
    ----------
    times : (n_time,) s, output times.
    until : s, end of the curve.
    time_tolerance : relative error of the curve.
    stations : where ``displacement`` is wanted; None: nowhere.
    """

    template: Template
    times: Float
    until: float
    time_tolerance: float
    stations: StationTable | None


def take(
    backend: StoreBackend, origins: Mapping[str, Mapping[str, Any]], wanted: Wanted
) -> dict[int, Lane]:
    """Read lanes that other campaigns have stored.

    What is gone, damaged or not good enough for the wanted times is left out, and
    has to be solved.

    Parameters
    ----------
    origins : by place in the own store {"campaign", "position", "group", "files"}:
        whose, where there, and the checksums of that group's files.

    Returns
    -------
    Arrays of `group_arrays` by backend, each without its axis of sources.
    """
    taken: dict[int, Lane] = {}
    sound: dict[tuple[str, int], bool] = {}
    for position, origin in origins.items():
        whose = (str(origin["campaign"]), int(origin["group"]))
        if whose not in sound:
            sound[whose] = _is_sound(backend, *whose, origin.get("files") or {})
        if not sound[whose]:
            continue
        try:
            lane = _read(backend, origin, wanted)
        except (OSError, KeyError, ValueError, IndexError, ArchiveError) as error:
            log.warning("a source of campaign %s cannot be read: %s", whose[0], error)
            continue
        if lane is not None:
            taken[int(position)] = lane
    return taken


def stack(lanes: Sequence[Lane]) -> dict[str, Any]:
    """Return lanes as the arrays of one group; lanes with fewer modes end in NaN."""
    found = {}
    for name in lanes[0]:
        parts = [np.asarray(lane[name]) for lane in lanes]
        if name in {"response", "recurrence"}:
            most = max(len(part) for part in parts)
            parts = [
                np.pad(
                    part,
                    [(0, most - len(part)), *[(0, 0)] * (part.ndim - 1)],
                    constant_values=np.nan,
                )
                for part in parts
            ]
        found[name] = np.stack(parts)
    return found


def _is_sound(
    backend: StoreBackend, campaign: str, group: int, files: dict[str, str]
) -> bool:
    """Tell whether a stored group reads back as its manifest says."""
    root = paths.greens(campaign)
    try:
        wrong = [
            name
            for name, digest in files.items()
            if backend.sha256(f"{root}/{chunk_key(name, group)}") != digest
        ]
    except OSError as error:
        log.warning("group %d of campaign %s is not there: %s", group, campaign, error)
        return False
    if wrong or not files:
        log.warning("group %d of campaign %s is damaged: %s", group, campaign, wrong)
    return bool(files) and not wrong


def _read(
    backend: StoreBackend, origin: Mapping[str, Any], wanted: Wanted
) -> Lane | None:
    """Read one lane, and evaluate it where it was not evaluated there."""
    campaign, row = str(origin["campaign"]), int(origin["position"])
    store: Any = zarr.open_group(reading.greens(backend, campaign), mode="r")
    template = wanted.template
    variables = group_arrays(template.sizes, template.integrator)
    lane: Lane = {
        v.name: store[v.name][row] for v in variables if v.name != "displacement"
    }
    count = int(lane["mode_count"])
    lane["response"] = lane["response"][:count]
    if "recurrence" in lane:
        lane["time_error"] = _time_error(store, lane, wanted)
        if lane["time_error"] > _ROUNDING * wanted.time_tolerance:
            log.warning("a source of campaign %s is not exact enough", campaign)
            return None
    if wanted.stations is not None and len(wanted.stations):
        lane["displacement"] = _displacement(store, row, lane, wanted)
    return lane


def _time_error(store: Any, lane: Lane, wanted: Wanted) -> float:
    """Error of the curve, relative to its largest change at the times wanted now.

    What Lanczos leaves out grows with time, so that the error at any earlier time is
    at most the stored one, which is relative to the largest change until the end of
    the stored curve.
    """
    before = np.append(store["time"][:], float(store.attrs["until_yr"])) * YEAR
    now = np.append(wanted.times, wanted.until)
    then, change = _largest_change(lane, before), _largest_change(lane, now)
    stored = float(lane["time_error"])
    return stored * then / change if change > 0.0 else stored


def _largest_change(lane: Lane, times: Float) -> float:
    """Largest displacement after the elastic one on the surface, m per m."""
    modes = np.asarray(lane["response"][1:], dtype=np.float64)
    flat = modes.reshape(len(modes), -1)
    found = _coefficients(lane, times)[:, 1:] @ flat
    return float(np.abs(found).max(initial=0.0))


def _coefficients(lane: Lane, times: Float) -> Float:
    """(n_time, n_mode) weights of a spectral lane's modes."""
    return spectral_weights(
        lane["recurrence"][: len(lane["response"])],
        float(lane["start_norm"]),
        float(lane["shift"]),
        times,
    )


def _displacement(store: Any, row: int, lane: Lane, wanted: Wanted) -> Float:
    """(n_time, n_station, 3) float64, m per m, at the wanted stations and times."""
    stations = wanted.stations
    assert stations is not None  # noqa: S101 - asked by the caller
    if _same_points(store, stations, wanted.times):
        return np.asarray(store["displacement"][row], dtype=np.float64)
    xy = np.column_stack([store["node_x"][:], store["node_y"][:]])
    nodes, weights = SurfaceInterpolator(
        xy, store["face_node_connectivity"][:]
    ).weights(np.asarray(stations.x), np.asarray(stations.y), list(stations.name))
    if "recurrence" in lane:
        coefficients = _coefficients(lane, wanted.times)
    else:
        steps = store["step_time"][:] * YEAR
        coefficients = step_weights(steps[: len(lane["response"])], wanted.times)
    response = np.asarray(lane["response"], dtype=np.float64)
    at = np.einsum("sk,mskc->msc", weights, response[:, nodes])
    return np.asarray(np.einsum("tm,msc->tsc", coefficients, at))


def _same_points(store: Any, stations: StationTable, times: Float) -> bool:
    """Tell whether a store was evaluated at these very stations and times."""
    if "displacement" not in store:
        return False
    pairs = (
        (store["station_x"][:], stations.x),
        (store["station_y"][:], stations.y),
        (store["time"][:], times / YEAR),
    )
    return all(np.array_equal(there, np.asarray(here)) for there, here in pairs)
