"""What the numerics raise means the same to every worker, whatever has called them."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import afterslip_solver
from afterslip.errors import DamagedError, SpecError, one_problem
from afterslip_common.errors import InputError, MeshError, RankLostError
from afterslip_workers.errors import classify
from afterslip_workers.store.errors import StoreLostError

# understood where they are raised: by the checkpoint's reader, by the engine of waves
ELSEWHERE = {"StateError", "UnstableError"}


def raised_by_the_solver() -> list[tuple[str, str]]:
    """Return module and name of every error that the solver defines."""
    root = Path(str(afterslip_solver.__file__)).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        found += [
            (module, node.name)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef)
            and node.bases
            and node.name.endswith("Error")
        ]
    return [(module, name) for module, name in found if name not in ELSEWHERE]


@pytest.mark.parametrize(("module", "name"), raised_by_the_solver())
def test_error_of_the_solver_is_no_internal_error(module, name):
    kind = getattr(importlib.import_module(module), name)
    expected = "oom" if issubclass(kind, MemoryError) else "bad_input"
    found = classify(kind("slip beyond the fault"))
    assert found.error_class == expected
    assert "slip beyond the fault" in found.message


def test_the_solver_defines_the_errors_that_this_test_is_about():
    names = {name for _, name in raised_by_the_solver()}
    assert {"MaterialError", "ModelError", "BackendError", "InversionError"} <= names


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MeshError("fault main: too small"), "mesh"),
        (RankLostError("rank 1 was killed"), "gpu_error"),
        (InputError("no such thing"), "bad_input"),
        (one_problem("fault.dip", 95, "is too steep"), "bad_input"),
        (DamagedError("greens.zarr", "shift/c/0", "is missing"), "damaged"),
        (StoreLostError("the mount is away"), "store_lost"),
        (MemoryError("9 TiB"), "oom"),
        (ValueError("shapes differ"), "internal"),
    ],
)
def test_error_has_its_class(error, expected):
    assert classify(error).error_class == expected


@pytest.mark.parametrize("kind", [MeshError, InputError, SpecError, DamagedError])
def test_error_that_only_bears_the_name_is_internal(kind):
    """Another package's ``MeshError`` says nothing about the user's mesh."""
    other = type(kind.__name__, (ValueError,), {})
    assert classify(other("stray")).error_class == "internal"
