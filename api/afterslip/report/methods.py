"""The paragraph of methods, with the numbers of a result filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from afterslip.result import facts, labels
from afterslip.units import largest_slip, limits

_PRIORS = {
    "laplacian": "the squared Laplacian of slip (Yabuki & Matsu'ura 1992)",
    "von_karman": "the inverse of a von Kármán covariance (Mai & Beroza 2002)",
}
_CHOICES = {
    "cross_validation": "the least error of data held out",
    "one_standard_error": "the smoothest weight within one standard error of the "
    "least error of data held out",
}


def methods(result: xr.Dataset) -> str:
    """Return sentences for a paper; what the result does not know is left out."""
    return " ".join(_sentences(result))


def inputs(result: xr.Dataset) -> list[tuple[str, str]]:
    """Return (name, digest) of the inputs and of the Green's functions."""
    spec = facts(result, "spec") or {}
    rows = list(_files(spec))
    for name, title in (
        ("digest", "campaign"),
        ("greens_digest", "Green's functions at the data"),
    ):
        if result.attrs.get(name):
            rows.append((title, str(result.attrs[name])))
    return rows


def _files(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _files(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            # data sets and faults have names, which say more than their places
            name = item.get("name") if isinstance(item, Mapping) else None
            yield from _files(item, f"{path} {name}" if name else f"{path}[{index}]")
    elif isinstance(value, str) and value.startswith("sha256:"):
        yield path.removesuffix(".file"), value


def _sentences(result: xr.Dataset) -> Iterator[str]:
    spec, request = (facts(result, name) or {} for name in ("spec", "request"))
    yield _sources(result, spec)
    yield _greens(result, spec)
    yield _data(result, request)
    yield from _windows(result, request)
    yield from _prior(result, request)
    yield from _draws(result, request)
    yield _outcome(result)


def _sources(result: xr.Dataset, spec: Mapping[str, Any]) -> str:
    n = result.sizes["source"]
    grids = spec.get("sources") or []
    grids = [grids] if isinstance(grids, Mapping) else grids
    words = []
    for grid in grids:
        shape = "patches" if grid.get("shape") == "patch" else "bicubic B-splines"
        components = " and ".join(grid.get("components") or ["strike", "dip"])
        words.append(
            f"{grid['along_strike']} by {grid['down_dip']} {shape} of {components} "
            f"slip on {grid['fault']}"
        )
    made = f": {'; '.join(words)}" if words else ""
    return f"Slip is a sum of {n} unit sources{made}."


def _greens(result: xr.Dataset, spec: Mapping[str, Any]) -> str:
    model, layers = facts(result, "model") or {}, spec.get("model", {})
    mesh = ""
    if "n_elements" in model and "n_unknowns" in model:
        mesh = (
            f" with {int(model['n_elements']):,} elements and "
            f"{int(model['n_unknowns']):,} unknowns"
        )
    parts = [*layers.get("layers", []), *layers.get("bodies", [])]
    flowing = [
        f"{part['name']} ({', '.join(map(str, part['rheology']))})"
        for part in parts
        if isinstance(part.get("rheology"), Mapping)
    ]
    rock = f"{len(parts)} layers and bodies" if parts else "the model"
    flow = f", of which {', '.join(flowing)} flow" if flowing else ", all elastic"
    return f"Green's functions were computed{mesh} in {rock}{flow if parts else ''}."


def _data(result: xr.Dataset, request: Mapping[str, Any]) -> str:
    names, counts = np.unique(labels(result, "obs_dataset"), return_counts=True)
    sets = ", ".join(f"{n} of {k}" for k, n in zip(names, counts, strict=True))
    factors = result.attrs.get("variance_factors")
    found = (
        f"{result.sizes['obs']} data at {result.sizes['station']} stations "
        f"({sets}) were weighed by their errors"
    )
    if factors is not None and request.get("smoothness", "auto") == "auto":
        asked = request.get("datasets") or names.tolist()
        values = np.atleast_1d(factors)
        if len(values) == len(asked):
            said = ", ".join(f"{k} {v:.3g}" for k, v in zip(asked, values, strict=True))
            found += f", whose variances were estimated to be off by factors ({said})"
    if "model_sigma" in result:
        sigma = 1e3 * np.asarray(result["model_sigma"].values, dtype=np.float64)
        rms = float(np.sqrt(np.mean(sigma**2)))
        found += (
            f"; errors of the Green's functions, {rms:.2g} mm rms, were added to the "
            "covariance (Duputel et al. 2014)"
        )
    return f"{found}."


def _windows(result: xr.Dataset, request: Mapping[str, Any]) -> Iterator[str]:
    """Say how slip follows a front, and how ground motion was filtered."""
    asked = request.get("windows")
    if asked is None:
        return
    yield (
        f"Slip of a source grows in {asked['count']} windows"
        + (f", {asked['spacing']} apart" if asked["count"] > 1 else "")
        + ", each with the source-time function of the Green's functions, behind a "
        f"front of {asked['rupture_speed']:g} km/s from the hypocentre (Hartzell & "
        "Heaton 1983)."
    )
    filters = [
        f"{item['name']} below {item['series']['lowpass']:g} Hz"
        for item in facts(result, "datasets") or []
        if (item.get("series") or {}).get("lowpass") is not None
    ]
    if filters:
        yield (
            "Data and Green's functions went through the same causal Butterworth "
            f"filter of order 4 ({', '.join(filters)})."
        )


def _prior(result: xr.Dataset, request: Mapping[str, Any]) -> Iterator[str]:
    weight = result.attrs.get("smoothness")
    prior = next(iter(request.get("prior") or {"laplacian": {}}))
    if weight is not None:
        text = (
            "Slip minimises the sum of squared residuals over their variances plus "
            f"{float(weight):.3g} times {_PRIORS.get(prior, prior)}"
        )
        sparsity = float(result.attrs.get("sparsity", 0.0))
        if sparsity:
            text += f" plus {sparsity:.3g} times the sum of absolute slips"
        yield f"{text}."
    signs = [
        f"{part} slip was {value}"
        for part, value in (request.get("sign") or {}).items()
        if value != "free"
    ]
    if request.get("constraints"):
        signs.append("bounds or rakes were given for single faults")
    if request.get("moment"):
        moment = request["moment"]
        signs.append(f"Mw {moment['magnitude']:g} ± {moment['error']:g} was a datum")
    if signs:
        said = "; ".join(signs)
        yield f"{said[0].upper()}{said[1:]}."


def _draws(result: xr.Dataset, request: Mapping[str, Any]) -> Iterator[str]:
    choice = request.get("choice", "evidence")
    effective = result.attrs.get("effective_draws")
    if request.get("smoothness", "auto") != "auto":
        yield "The smoothness was given."
    elif choice in _CHOICES:
        yield f"The smoothness has {_CHOICES[choice]}."
    elif effective is not None:
        yield (
            "The smoothness and the factors are medians of their posterior together "
            "with slip."
        )
    if effective is not None:
        yield (
            f"Intervals are those of draws, {float(effective):.0f} of them effective, "
            "each taken to the nearest slip that signs and bounds allow (Everink et "
            "al. 2023)."
        )
    score, folds = result.attrs.get("score"), result.attrs.get("folds")
    if score is not None and folds is not None and np.isfinite(score):
        yield (
            f"Data held out in {int(folds)} folds of stations are predicted with a "
            f"mean squared error of {float(score):.3g} in units of their variance."
        )


def _outcome(result: xr.Dataset) -> str:
    attrs = result.attrs
    drawn = " (95 % in brackets)" if attrs.get("magnitude_interval") is not None else ""
    return (
        f"The result{drawn} has Mw {float(attrs['magnitude']):.2f}"
        f"{limits(attrs.get('magnitude_interval'), '.2f')}, a largest slip of "
        f"{largest_slip(attrs, '.2g')} and a variance reduction of "
        f"{100 * float(attrs['variance_reduction']):.1f} %."
    )
