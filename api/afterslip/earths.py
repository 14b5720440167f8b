"""Campaigns in other earths: made from one spec, and checked against another."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from afterslip.errors import Problem, SpecError, one_problem
from afterslip.identity import plain
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.inversion import Inversion

RIGIDITY = "rigidity"
FROM_COMMAND = "--change"
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
# a sign alone is part of a number; a factor has its own
_FACTOR = re.compile(r"([x/])\s*(.+)")


def perturbed(spec: Campaign, change: str) -> list[Campaign]:
    """Return the campaigns of a change to the earth, one for each alternative.

    Parameters
    ----------
    change : ``PATH=VALUE`` or ``PATH=VALUE,VALUE`` such as
        ``layers.mantle.rheology.maxwell.viscosity=x3,/3``; the path is below ``model``,
        items of a list by name or ``[number]``, and a value is a number, ``x`` factor
        or ``/`` divisor of what is there. ``rigidity`` of a layer changes both wave
        speeds, and leaves Poisson's ratio and the density as they are.

    Returns
    -------
    Campaigns without inversions and data sets, in the order of the values.

    Raises
    ------
    SpecError
        The path leads to no number of the model, or the earth that comes out is none.
    """
    path, equals, values = (part.strip() for part in change.partition("="))
    if not (path and equals and values):
        hint = "write PATH=VALUE, e.g. layers[0].bottom=20,40"
        raise one_problem(FROM_COMMAND, change, "is no change of the earth", hint)
    found = []
    for value in values.split(","):
        data = copy.deepcopy(spec.to_dict())
        for key in ("inversions", "datasets"):
            data.pop(key, None)
        _apply(data["model"], path, value.strip())
        data["name"] = f"{spec.name} {path} {value.strip()}"
        found.append(type(spec).from_dict(data, spec.base))
    return found


def asked_for(spec: Campaign, request: Inversion) -> list[list[Campaign]]:
    """Return the campaigns of ``model_error.perturb``, alternatives together.

    Raises
    ------
    SpecError
        With the path in the inversion of each change that cannot be made.
    """
    found, problems = [], []
    for path, values in (request.model_error.perturb or {}).items():
        try:
            found.append(perturbed(spec, f"{path}={','.join(values)}"))
        except SpecError as error:
            here = f"model_error.perturb.{path}"
            problems += [
                Problem(here, one.value, one.message, one.hint)
                if one.path == FROM_COMMAND
                else Problem(here, one.value, f"makes {one.path} {one.message}")
                for one in error.problems
            ]
    if problems:
        raise SpecError(problems)
    return found


def named(request: Inversion, made: Sequence[Sequence[str]]) -> Inversion:
    """Return a request that names the campaigns that it asked for.

    Parameters
    ----------
    made : ids of the campaigns of `asked_for`.
    """
    if not made:
        return request
    error = request.model_error
    groups = [*(error.campaigns or []), *map(list, made)]
    resolved = error.model_copy(update={"campaigns": groups, "perturb": None})
    return request.model_copy(update={"model_error": resolved})


def _apply(model: dict[str, Any], path: str, value: str) -> None:
    *parents, last = [a or int(b) for a, b in _STEP.findall(path)] or [path]
    here: Any = model
    for step in parents:
        here = _within(here, step, path)
    if last == RIGIDITY and isinstance(here, dict) and "vs" in here:
        factor = _changed(1.0, value, path)
        for speed in ("vp", "vs"):
            here[speed] = float(here[speed]) * factor**0.5
        return
    old = _within(here, last, path)
    if isinstance(old, bool) or not isinstance(old, int | float):
        raise one_problem(FROM_COMMAND, path, "is not a number of the model")
    here[last] = _changed(float(old), value, path)


def _within(here: Any, step: str | int, path: str) -> Any:
    """Return an item of a mapping, or of a list by its number or name."""
    try:
        if isinstance(here, list) and isinstance(step, str):
            return next(item for item in here if item.get("name") == step)
        return here[step]
    except (KeyError, IndexError, TypeError, StopIteration):
        names = here if isinstance(here, dict) else [i.get("name") for i in here]
        hint = f"there is: {', '.join(map(str, names))}"
        text = f"has no {step} in the model"
        raise one_problem(FROM_COMMAND, path, text, hint) from None


def _changed(old: float, value: str, path: str) -> float:
    factor = _FACTOR.fullmatch(value)
    try:
        number = float(factor[2] if factor else value)
        if factor is None:
            return number
        return old * number if factor[1] == "x" else old / number
    except (ValueError, ZeroDivisionError):
        hint = "write a number, x3 or /3"
        change = f"{path}={value}"
        raise one_problem(FROM_COMMAND, change, "is no value", hint) from None


def earth_problems(
    spec: Campaign, request: Inversion, others: Mapping[str, Campaign]
) -> Iterator[Problem]:
    """Say why campaigns are not the same sources in other earths.

    Parameters
    ----------
    others : specs by id, of all that ``model_error.campaigns`` names.
    """
    for path, identity in request.model_error.places():
        other = others[identity]
        yield from (
            Problem(path, identity, text, hint)
            for text, hint in _differences(spec, other)
        )


def _differences(spec: Campaign, other: Campaign) -> Iterator[tuple[str, str]]:
    if plain(spec) == plain(other):
        yield "is the same campaign", "name campaigns in other earths"
        return
    if other.physics != spec.physics:
        yield f"is of the physics {other.physics}", f"name one of {spec.physics}"
    if plain(other.model.frame) != plain(spec.model.frame):
        yield "has another frame", "stations would be at other places"
    if plain(other.sources) != plain(spec.sources):
        yield "has other sources", "give both campaigns the same sources"
    if spec.end is not None and other.end is not None and other.end < spec.end:
        text = (
            f"ends at {other.end.text}, and the inversion's campaign at {spec.end.text}"
        )
        yield text, "give both the same times.until"


def named_list(groups: Sequence[Sequence[str]]) -> str:
    """Write ids as ``model_error.campaigns`` of a spec takes them."""
    parts = [g[0] if len(g) == 1 else f"[{', '.join(g)}]" for g in groups]
    return f"model_error: {{campaigns: [{', '.join(parts)}]}}"
