"""Sample a campaign's Green's functions through the server."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from afterslip.client.handle import CampaignProtocol
from afterslip.client.transport import Transport
from afterslip.errors import Problem, SpecError, one_problem
from afterslip.readers.cells import restored

PLACES = (("lon", "lat"), ("x_km", "y_km"))


def sample(
    campaign: CampaignProtocol,
    transport: Transport,
    stations: Any,
    times: list[str],
    most: int,
) -> xr.DataArray:
    """Ask for the stations in parts and join the answers; see the campaign's method."""
    wrong = [t for t in times if not isinstance(t, str)]
    if wrong:
        raise one_problem("times", wrong[0], "has no unit", 'write "30 d" or "1 yr"')
    rows = list(_rows(stations, campaign))
    if not rows:
        raise one_problem("stations", None, "are none", "give at least one")
    n_source = int(campaign.data.get("n_sources") or 1)
    part = max(1, most // (3 * n_source * max(1, len(times))))
    pieces = [
        _piece(
            transport.post(
                f"/v1/campaigns/{campaign.id}/sample",
                {"stations": rows[first : first + part], "times": times},
            )
        )
        for first in range(0, len(rows), part)
    ]
    return xr.concat(pieces, "station") if len(pieces) > 1 else pieces[0]


def _piece(answer: dict[str, Any]) -> xr.DataArray:
    values = np.asarray(answer["data"], dtype=np.float64).reshape(answer["shape"])
    array = xr.DataArray(
        values,
        dims=answer["dims"],
        coords={
            "time": np.asarray(answer["time_yr"], dtype=np.float64),
            "station": np.asarray(answer["stations"], dtype=str),
            "component": ["east", "north", "up"],
        },
        name="displacement",
        attrs={"units": "m", "long_name": "displacement per metre of slip"},
    )
    array["time"].attrs["units"] = "yr"
    if answer.get("space_error") is not None:
        error = np.asarray(answer["space_error"], dtype=np.float64)
        array = array.assign_coords(space_error=(("source", "time", "station"), error))
    return array.transpose("source", "time", "station", "component")


def _rows(stations: Any, campaign: CampaignProtocol) -> Iterator[dict[str, Any]]:
    if isinstance(stations, str | Path):
        yield from _from_csv(Path(stations))
    elif isinstance(stations, Mapping):
        frame = campaign.spec["model"].get("frame", {}).get("kind")
        keys = PLACES[1] if frame == "local" else PLACES[0]
        for name, place in stations.items():
            yield {"name": str(name), **_place("stations", str(name), place, keys)}
    elif isinstance(stations, Sequence):
        for number, row in enumerate(stations):
            yield _from_mapping(f"stations[{number}]", row)
    else:
        raise one_problem(
            "stations", type(stations).__name__, "are not understood",
            "give a CSV file, a list of mappings or {name: (lon, lat)}",
        )  # fmt: skip


def _place(path: str, name: str, place: Any, keys: tuple[str, str]) -> dict[str, float]:
    pair = ", ".join(keys)
    try:
        first, second = (float(v) for v in place)
    except (TypeError, ValueError, OverflowError):
        message = f"is not a pair ({pair})"
        raise one_problem(f"{path}.{name}", place, message) from None
    if not (isfinite(first) and isfinite(second)):
        message = f"must be finite numbers ({pair})"
        hint = "fill in the position, or leave the station out"
        raise one_problem(f"{path}.{name}", [first, second], message, hint)
    return {keys[0]: first, keys[1]: second}


def _from_mapping(path: str, row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        name = row.get("name", row.get("station"))
        for keys in PLACES:
            if all(key in row for key in keys) and name is not None:
                place = [row[k] for k in keys]
                return {"name": str(name), **_place(path, str(name), place, keys)}
    raise one_problem(
        path, row, "is not a station", "write {name, lon, lat} or {name, x_km, y_km}"
    )


def _from_csv(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise one_problem(str(path), None, "file not found") from None
    except (OSError, UnicodeDecodeError) as error:
        raise one_problem(str(path), None, f"cannot be read: {error}") from None
    table = csv.DictReader(line for line in text.splitlines() if line[:1] != "#")
    heads = [head.strip() for head in table.fieldnames or []]
    keys = next((k for k in PLACES if set(k) <= set(heads)), None)
    if keys is None or "station" not in heads:
        raise one_problem(
            f"{path.name} line 1", ",".join(heads), "does not name the columns",
            "begin with station,lon,lat or station,x_km,y_km",
        )  # fmt: skip
    table.fieldnames = heads
    problems, rows = [], []
    for number, row in enumerate(table, 2):
        try:
            found = _from_mapping("", row)
            rows.append({**found, "name": restored(found["name"])})
        except SpecError:
            values = ",".join(str(row[k]) for k in ("station", *keys))
            problems.append(
                Problem(f"{path.name} line {number}", values, "is not a position")
            )
    if problems:
        raise SpecError(problems)
    yield from rows
