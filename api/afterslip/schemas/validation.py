"""From pydantic's findings to problems in the user's words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from afterslip.errors import Problem, SpecError, show
from afterslip.units import SLIP_COMPONENTS

M = TypeVar("M", bound=BaseModel)

# words of others for what is written otherwise here
ADVICE = {
    "rake": "rake is of slip, in m: strike = slip cos(rake), dip = slip sin(rake)"
}
# problems that one answer lists
MOST = 100
# of a word that is compared with the known ones
_LONGEST = 100


def validate(model: type[M], data: Any) -> M:
    """Return ``data`` as a model.

    Raises
    ------
    SpecError
        With every problem found, each with its path, value and hint.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise SpecError(translate(error, model)) from None
    except RecursionError:
        raise SpecError([Problem("", None, "is nested too deeply")]) from None


def translate(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Return pydantic's findings about ``model`` as problems."""
    found: list[Problem] = []
    count = error.error_count()
    for detail in islice(error.errors(include_url=False), MOST):
        for problem in _problems(detail, model):
            if problem not in found:
                found.append(problem)
    if count > MOST:
        found.append(Problem("", None, f"has {count - MOST:,} more problems"))
    return found


def _problems(detail: ErrorDetails, model: type[BaseModel]) -> Iterator[Problem]:
    # alternatives of a union carry a name in angle brackets, which no user wrote; the
    # last part of an unknown key is the user's own
    named = detail["loc"][-1:] if detail["type"] == "extra_forbidden" else ()
    inner = detail["loc"][: len(detail["loc"]) - len(named)]
    if inner[-1:] == ("[key]",):  # pydantic's word: the key before it is wrong
        inner = inner[:-1]
    loc = [*(part for part in inner if not str(part).startswith("<")), *named]
    kind = detail["type"]
    context = detail.get("ctx", {})
    path = path_text(loc)
    value = detail["input"]
    if kind == "afterslip_many":
        yield from (problem.under(path) for problem in context["problems"])
    elif kind == "afterslip":
        yield Problem(path, value, context["says"], context["hint"])
    elif kind == "missing":
        yield Problem(path, None, "is missing", _missing_hint(loc, model))
    elif kind == "extra_forbidden":
        yield Problem(path, value, "is not a known key", _unknown_hint(loc, model))
    else:
        yield Problem(path, value, *_plain(kind, value, context))


def _plain(kind: str, value: Any, context: dict[str, Any]) -> tuple[str, str]:
    if kind == "literal_error":
        options = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        known = options.split(", ")
        near = difflib.get_close_matches(show(value), known, n=1)
        did_you = f"did you mean {near[0]}?" if near else ""
        return (
            f"must be {'one of ' if len(known) > 1 else ''}{options}",
            _advice(value, known) or did_you,
        )
    if kind in {"model_type", "dict_type", "model_attributes_type"}:
        return "must be a mapping of keys to values", "write {key: value}"
    if kind == "invalid_key":
        return "is not a known key", ""
    if kind == "list_type":
        return "must be a list", "write [...]"
    if kind == "string_type":
        return "must be a text", "put it in quotes"
    if kind in {"bool_type", "bool_parsing"}:
        return "must be true or false", ""
    if kind == "too_short":
        return f"needs at least {context['min_length']}", ""
    if kind == "too_long":
        return f"may have at most {context['max_length']}", ""
    return "is not valid here", ""


def path_text(loc: Sequence[str | int]) -> str:
    """Return ``model.layers[1].vs`` for ``("model", "layers", 1, "vs")``."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{show(part)}" if text else show(part)
    return text


def _missing_hint(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    parent = _model_at(loc[:-1], model)
    field = parent.model_fields.get(str(loc[-1])) if parent else None
    if field is None or not field.description:
        return f"add {loc[-1]}"
    return f"add {loc[-1]}: {field.description}"


def _unknown_hint(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    parent = _model_at(loc[:-1], model)
    if parent is None:
        return ""
    known = list(parent.model_fields)
    if advice := _advice(loc[-1], known):
        return advice
    near = nearest(str(loc[-1]), known)
    return f"did you mean {near}?" if near else f"known here: {', '.join(known)}"


def _advice(word: Any, known: Sequence[str]) -> str:
    """Say how to write what another word means, where it is about slip."""
    about_slip = set(SLIP_COMPONENTS) <= set(known)
    return ADVICE.get(show(word).lower(), "") if about_slip else ""


def nearest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that is most like ``word``, if any is like it."""
    word = word[:_LONGEST]
    lower = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), list(lower), n=1)
    if found:
        return lower[found[0]]
    inside = [k for k in lower if k.startswith(word.lower()) or word.lower() in k]
    return lower[inside[0]] if word and inside else None


def _model_at(
    loc: Sequence[str | int], model: type[BaseModel]
) -> type[BaseModel] | None:
    """Follow a path through the fields' types; None where it leaves the models."""
    here: type[BaseModel] | None = model
    for part in loc:
        if isinstance(part, int):
            continue  # the item's model was taken together with the list's field
        if here is None:
            return None
        field: FieldInfo | None = here.model_fields.get(part)
        here = _model_in(field.annotation) if field else None
    return here


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_in(argument)
        if found is not None:
            return found
    return None
