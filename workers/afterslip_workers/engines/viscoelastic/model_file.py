"""A model as one file of arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from afterslip_solver.model import (
    FaultMesh,
    Materials,
    Model,
    Placement,
    Restoring,
    SplitNodes,
    Surface,
    TetMesh,
)
from afterslip_workers.machine.array_files import read_arrays, write_arrays

FORMAT = 1
# of what belongs to the model on the coarser mesh, which old files do not have
_COARSER = "coarser."


def save(path: Path, model: Model) -> None:
    """Write a model; bit for bit what :func:`load` returns."""
    arrays: dict[str, Any] = {}
    plain: dict[str, Any] = {"format": FORMAT, "faults": list(model.faults)}
    for prefix, each in (("", model), (_COARSER, model.coarser)):
        if each is None:
            continue
        for name, part in _parts(each):
            for item in fields(part):
                value = getattr(part, item.name)
                if value is None:
                    continue
                target = arrays if isinstance(value, np.ndarray) else plain
                target[f"{prefix}{name}.{item.name}"] = value
        arrays[f"{prefix}fixed"] = each.fixed
    with path.open("wb") as stream:
        write_arrays(stream, {"_plain": np.array(json.dumps(plain)), **arrays})


def _parts(model: Model) -> Iterator[tuple[str, Any]]:
    yield "mesh", model.mesh
    yield "materials", model.materials
    yield "surface", model.surface
    if model.restoring is not None:
        yield "restoring", model.restoring
    if model.placement is not None:
        yield "placement", model.placement
    for number, name in enumerate(model.faults):
        yield f"fault{number}", model.faults[name]
        yield f"split{number}", model.splits[name]


def load(path: Path) -> Model:
    """Read a model.

    Raises
    ------
    ValueError
        If the file is of another format; others as `read_arrays`.
    """
    arrays = read_arrays(path)
    plain = json.loads(str(arrays.pop("_plain")))
    if plain["format"] != FORMAT:
        raise ValueError(f"{path.name} has format {plain['format']}, not {FORMAT}")
    values = {**plain, **arrays}
    model, faults = _model(values, "", plain["faults"]), plain["faults"]
    if f"{_COARSER}fixed" not in values:
        return model
    return replace(model, coarser=_model(values, _COARSER, faults))


def _model(values: dict[str, Any], prefix: str, names: list[str]) -> Model:
    def part(kind: Any, name: str) -> Any:
        # what a model may lack is not written
        found = {f.name: values.get(f"{prefix}{name}.{f.name}") for f in fields(kind)}
        return kind(**{n: _value(v) for n, v in found.items() if v is not None})

    return Model(
        mesh=part(TetMesh, "mesh"),
        materials=part(Materials, "materials"),
        fixed=values[f"{prefix}fixed"],
        surface=part(Surface, "surface"),
        faults={n: part(FaultMesh, f"fault{i}") for i, n in enumerate(names)},
        splits={n: part(SplitNodes, f"split{i}") for i, n in enumerate(names)},
        restoring=(
            part(Restoring, "restoring")
            if f"{prefix}restoring.faces" in values
            else None
        ),
        placement=(
            part(Placement, "placement")
            if f"{prefix}placement.nodes" in values
            else None
        ),
    )


def _value(stored: Any) -> Any:
    return tuple(stored) if isinstance(stored, list) else stored
