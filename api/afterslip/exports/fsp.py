"""Slip in the FSP format of SRCMOD (Mai & Thingbaijam 2014, SRL 85, 1348-1357)."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from afterslip.errors import one_problem
from afterslip.exports.subfaults import Float, Subfaults, subfaults
from afterslip.frame import Frame
from afterslip.result import facts, is_geographic, labels, mesh_error
from afterslip.schemas import earth

# the format's word for what is not known
UNKNOWN = 999
_RULE = "% " + "-" * 98


@dataclass(frozen=True, slots=True)
class Event:
    """What a slip model is of, and what the result does not know.

    Attributes
    ----------
    name : of the earthquake; empty: the campaign's name.
    date : as mm/dd/yyyy; may be empty.
    hypocentre : lon, lat (degrees), depth (km); None: the centroid of the moment,
        which the file then says.
    """

    name: str = ""
    date: str = ""
    hypocentre: tuple[float, float, float] | None = None


def write_fsp(result: xr.Dataset, path: str | Path, event: Event | None = None) -> Path:
    """Write the slip as rectangular subfaults, the grid of sources.

    Each fault with sources is a segment, as in the multi-segment files of SRCMOD.

    Slip and rake are those of the mean slip vector of a subfault. What slip models
    from displacements do not have (rise time, rupture velocity, frequencies) is 999.

    Raises
    ------
    SpecError
        The result has no longitudes and latitudes, or the date is not of its form.
    """
    event = event or Event()
    _require_date(event.date)
    if not is_geographic(result):
        raise one_problem(
            "result",
            None,
            "has no longitudes and latitudes, which FSP needs",
            "use frame: {kind: geographic} in the spec",
        )
    parts = subfaults(result)
    frame = Frame.of(earth.Frame(**_frame(result)))
    centre, said = _hypocentre(parts, frame, event)
    layers = _layers(result)
    lines = [
        *_head(result, parts, event, centre, said),
        *_inversion(result, parts),
        *_structure(layers),
        *_introduction(result, parts),
        *(
            line
            for number, part in enumerate(parts)
            for line in _segment(
                part, number if len(parts) > 1 else None, frame, centre
            )
        ),
    ]
    path = Path(path)
    path.write_text("\n".join(lines) + "\n")
    return path


def _require_date(text: str) -> None:
    """Refuse a date that readers of the format would misread."""
    parts = re.fullmatch("([0-9]{2})/([0-9]{2})/([0-9]{4})", text)
    with suppress(ValueError):
        if not text or (parts and date(int(parts[3]), int(parts[1]), int(parts[2]))):
            return
    hint = "write month, day and year, such as 03/11/2011"
    raise one_problem("date", text, "must be mm/dd/yyyy", hint)


def _frame(result: xr.Dataset) -> dict[str, Any]:
    found: dict[str, Any] = facts(result, "frame") or {}
    # the frame alone, or the part of the spec that holds it
    return dict(found.get("frame", found))


def _hypocentre(
    parts: list[Subfaults], frame: Frame, event: Event
) -> tuple[Float, list[str]]:
    """Return x, y, z in m, and what to say of it."""
    if event.hypocentre is not None:
        lon, lat, depth = event.hypocentre
        x, y = frame.to_local(lon, lat)
        return np.array([float(x), float(y), -1e3 * depth]), []
    moment = np.concatenate([part.moment for part in parts])
    position = np.concatenate([part.position for part in parts])
    weight = moment if moment.any() else np.ones(len(moment))
    centroid = np.asarray(weight @ position / weight.sum())
    return centroid, ["% Loc and origin: centroid of the moment; no hypocentre given"]


def _head(
    result: xr.Dataset,
    parts: list[Subfaults],
    event: Event,
    centre: Float,
    said: list[str],
) -> list[str]:
    lon, lat = _degrees(result, centre)
    moment = float(sum(part.moment.sum() for part in parts))
    main = max(parts, key=lambda part: float(part.moment.sum()))
    size = 2 / 3 * (np.log10(moment) - 9.1) if moment > 0 else np.nan
    nearest = int(np.argmin(np.linalg.norm(_nodes(result) - centre, axis=1)))
    along, down = (
        float(result[f"fault_{name}"].values[nearest]) / 1e3
        for name in ("along", "down")
    )
    top = 0.0 - float(_inside(result).max()) / 1e3
    name = event.name or str(result.attrs.get("campaign_name", "unnamed"))
    tag = "".join(c for c in name.upper() if c.isalnum())[:16]
    model = str(result.attrs.get("inversion", ""))
    length = sum(part.n_along * part.along for part in parts) / 1e3
    width = max(part.n_down * part.down for part in parts) / 1e3
    title = " FINITE-SOURCE RUPTURE MODEL ".center(98, "-")
    return [
        f"% {title}",
        "%",
        f"% Event : {name}\t{event.date}\t[afterslip, {model}]",
        f"% EventTAG: {tag}",
        "%",
        f"% Loc  : LAT = {lat:.4f}\tLON = {lon:.4f}\tDEP = {-centre[2] / 1e3:.2f}",
        f"% Size : LEN = {length:.2f} km\tWID = {width:.2f} km"
        f"\tMw = {size:.2f}\tMo = {moment:.4e} Nm",
        f"% Mech : STRK = {main.strike:.1f}\tDIP = {main.dip:.1f}"
        f"\tRAKE = {main.rake:.1f}\tHtop = {top:.2f} km",
        f"% Rupt : HypX = {along:.2f} km\tHypZ = {down:.2f} km"
        f"\tavTr = {UNKNOWN} s\tavVr = {UNKNOWN} km/s",
        *said,
        "%",
    ]


def _inversion(result: xr.Dataset, parts: list[Subfaults]) -> list[str]:
    first = parts[0]
    kinds = labels(result, "obs_type")
    gnss = len(np.unique(result["obs_station"].values[np.char.startswith(kinds, "gn")]))
    insar = int((kinds == "insar").any())
    other = len(np.unique(result["obs_station"].values[kinds == "obp"]))
    title = " inversion-related parameters ".center(98, "-")
    return [
        f"% {title}",
        "%",
        f"% Invs : Nx = {first.n_along}\tNz = {first.n_down}"
        f"\tFmin = {UNKNOWN} Hz\tFmax = {UNKNOWN} Hz",
        f"% Invs : Dx = {first.along / 1e3:.3f} km\tDz = {first.down / 1e3:.3f} km",
        f"% Invs : Ntw = 1\tNsg = {len(parts)}"
        "\t(# of time-windows,# of fault segments)",
        f"% Invs : LEN = {UNKNOWN} s\tSHF = {UNKNOWN} s"
        "\t(time-window length and time-shift)",
        "% SVF  : none\t(type of slip-velocity function used)",
        "%",
        "% Data :\tSGM\tTELE\tTRIL\tLEVEL\tGPS\tINSAR\tSURF\tOTHER",
        f"% Data :\t0\t0\t0\t0\t{gnss}\t{insar}\t0\t{other}",
        f"% PHImx :\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}"
        f"\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}",
        f"% Rmin :\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}"
        f"\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}\t{UNKNOWN}",
        "%",
        _RULE,
    ]


def _layers(result: xr.Dataset) -> list[dict[str, Any]]:
    spec = facts(result, "spec") or {}
    return list(spec.get("model", {}).get("layers", []))


def _structure(layers: list[dict[str, Any]]) -> list[str]:
    lines = [
        "%",
        "% VELOCITY-DENSITY STRUCTURE",
        f"% No. of layers = {len(layers)}",
        "%",
        "% DEPTH\tP-VEL\tS-VEL\tDENS\tQP\tQS",
        "% [km]\t[km/s]\t[km/s]\t[g/cm^3]",
    ]
    top = 0.0
    for layer in layers:
        vp, vs, rho = (float(layer[name]) for name in ("vp", "vs", "rho"))
        lines.append(f"% {top:.2f}\t{vp:.2f}\t{vs:.2f}\t{rho / 1e3:.3f}\t0\t0")
        top = float(layer["bottom"])
    return [*lines, "%", _RULE]


def _introduction(result: xr.Dataset, parts: list[Subfaults]) -> list[str]:
    version = (facts(result, "versions") or {}).get("afterslip", "")
    error = mesh_error(result)
    return [
        f"% created by afterslip {version}".rstrip(),
        *([f"% estimated error of the mesh, of displacements: {error}"] * bool(error)),
        _RULE,
        "%",
        "% SOURCE MODEL PARAMETERS",
        f"%\tNsbfs = {sum(map(len, parts))} subfaults",
        "%\tX,Y,Z coordinates in km; SLIP in m; SF_MOMENT in Nm",
        "%\tif applicable: RAKE in deg, RISE in s, TRUP in s, slip in each TW in m",
        "%",
        "%\tCoordinates are given for center of each subfault or segment: |'|",
        "%\tOrigin of local coordinate system at epicenter: X (EW) = 0, Y (NS) = 0",
    ]


def _segment(
    parts: Subfaults, number: int | None, frame: Frame, centre: Float
) -> list[str]:
    """Write the rows of a fault, below a head of its own where there are several."""
    lines = []
    if number is not None:
        top = 0.0 - float(parts.position[:, 2].max()) / 1e3
        length = parts.n_along * parts.along / 1e3
        width = parts.n_down * parts.down / 1e3
        lines += [
            _RULE,
            f"% SEGMENT # {number + 1}: STRIKE = {parts.strike:.1f} deg"
            f"\tDIP = {parts.dip:.1f} deg\t[{parts.fault}]",
            f"% LEN = {length:.2f} km\tWID = {width:.2f} km",
            f"%\tdepth of the uppermost subfaults' centers = {top:.2f} km",
            f"%\tNx = {parts.n_along}\tNz = {parts.n_down}"
            f"\tNsbfs = {len(parts)} subfaults",
        ]
    lines += ["% LAT\tLON\tX==EW\tY==NS\tZ\tSLIP\tRAKE\tSF_MOMENT", _RULE]
    lon, lat = frame.to_geographic(parts.position[:, 0], parts.position[:, 1])
    away = (parts.position - centre) / 1e3
    rake = np.degrees(np.arctan2(parts.slip[:, 1], parts.slip[:, 0]))
    columns = [
        lat,
        lon,
        away[:, 0],
        away[:, 1],
        0.0 - parts.position[:, 2] / 1e3,
        np.hypot(parts.slip[:, 0], parts.slip[:, 1]),
        rake,
    ]
    for row, moment in zip(np.column_stack(columns), parts.moment, strict=True):
        place = f"{row[0]:10.5f} {row[1]:11.5f} {row[2]:11.4f} {row[3]:11.4f}"
        lines.append(
            f"{place} {row[4]:10.4f} {row[5]:10.4f} {row[6]:9.2f} {moment:13.5e}"
        )
    return lines


def _degrees(result: xr.Dataset, point: Float) -> tuple[float, float]:
    frame = Frame.of(earth.Frame(**_frame(result)))
    lon, lat = frame.to_geographic(point[0], point[1])
    return float(lon), float(lat)


def _nodes(result: xr.Dataset) -> Float:
    return np.column_stack([result[f"fault_{axis}"].values for axis in "xyz"])


def _inside(result: xr.Dataset) -> Float:
    """Heights (m) of the nodes of the slipping rectangle's triangles."""
    used = np.unique(result["fault_triangles"].values.astype(np.int64))
    down = result["fault_down"].values[used]
    inside = down >= -1e-6 * max(1.0, float(np.abs(down).max()))
    return np.asarray(result["fault_z"].values[used][inside])
