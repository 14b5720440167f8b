"""The files that a spec names, found and replaced by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from afterslip.errors import one_problem
from afterslip.schemas.base import Schema
from afterslip.schemas.campaign import Campaign
from afterslip.schemas.forward import Forward
from afterslip.schemas.values import SHA256, FileRef
from afterslip.spec.files import Files, content_ref

S = TypeVar("S", Campaign, Forward)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every value in a model that is no container."""
    if isinstance(value, Schema):
        for name, item in value.named():
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def refs(spec: Schema) -> dict[str, str]:
    """Return the files that a spec names.

    Parameters
    ----------
    spec : campaign, forward run or a part of one.

    Returns
    -------
    path in the spec, e.g. ``stations.file`` → reference, in the spec's order.
    """
    return {
        path: str(value) for path, value in leaves(spec) if isinstance(value, FileRef)
    }


def with_refs(spec: S, mapping: Mapping[str, str]) -> S:
    """Return the spec with other file references.

    Parameters
    ----------
    mapping : path in the spec → new reference; other references stay.
    """
    data = spec.to_dict()
    for path, ref in mapping.items():
        _put(data, path, ref)
    return type(spec).from_dict(data, spec.base)


def with_content_refs(spec: S, files: Files) -> S:
    """Return the spec with every reference replaced by its content's digest.

    Raises
    ------
    SpecError
        A file cannot be read; with the paths of all such files.
    """
    return with_refs(
        spec, {path: ref for path, (ref, _) in contents(spec, files).items()}
    )


def contents(spec: Schema, files: Files) -> dict[str, tuple[str, bytes]]:
    """Return path → (content reference, bytes) of every file that a spec names.

    Raises
    ------
    SpecError
        A file cannot be read; with the paths of all such files.
    """
    from afterslip.errors import Problem, SpecError

    found: dict[str, tuple[str, bytes]] = {}
    problems: list[Problem] = []
    read: dict[str, bytes] = {}
    for path, ref in refs(spec).items():
        try:
            if ref not in read:
                read[ref] = files.read(ref)
        except SpecError as error:
            problems += [
                Problem(path, ref, item.message, item.hint) for item in error.problems
            ]
            continue
        digest = content_ref(read[ref])
        if SHA256.match(ref) and digest != ref:
            problems.append(
                Problem(path, ref, "has another content", "upload it again")
            )
        found[path] = (digest, read[ref])
    if problems:
        raise SpecError(problems)
    return found


def _put(data: Any, path: str, ref: str) -> None:
    keys: list[str | int] = []
    for part in path.split("."):
        name, *indices = part.split("[")
        keys += [name, *(int(index.rstrip("]")) for index in indices)]
    try:
        for key in keys[:-1]:
            data = data[key]
        if not isinstance(data[keys[-1]], str):
            raise KeyError(keys[-1])
    except (KeyError, IndexError, TypeError):
        raise one_problem(path, ref, "names no file of this spec") from None
    data[keys[-1]] = ref
