"""A model comes back from its file bit for bit."""

from dataclasses import fields, replace

import numpy as np
import pytest

from afterslip_solver.materials import restoring_force
from afterslip_workers.engines.viscoelastic import model_file


def _same(first, second):
    for item in fields(first):
        a, b = getattr(first, item.name), getattr(second, item.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype, item.name
            assert np.array_equal(a, b), item.name
        else:
            assert a == b, item.name


def test_model_survives_its_file(broken_ground, tmp_path):
    model_file.save(tmp_path / "model.npz", broken_ground)
    back = model_file.load(tmp_path / "model.npz")
    for part in ("mesh", "materials", "surface"):
        _same(getattr(broken_ground, part), getattr(back, part))
    _same(broken_ground.faults["main"], back.faults["main"])
    _same(broken_ground.splits["main"], back.splits["main"])
    assert np.array_equal(back.fixed, broken_ground.fixed)
    assert back.restoring is None


def test_what_only_some_models_have_survives_too(broken_ground, tmp_path):
    materials = replace(
        broken_ground.materials,
        kelvin_viscosity=2.0 * broken_ground.materials.viscosity,
        kelvin_modulus=0.5 * broken_ground.materials.mu,
        branch_viscosity=np.outer(broken_ground.materials.viscosity, [1.0, 2.0]),
        branch_modulus=np.outer(broken_ground.materials.mu, [0.0, 0.5]),
    )
    restoring, _ = restoring_force(broken_ground.mesh, materials.rho)
    model = replace(broken_ground, materials=materials, restoring=restoring)
    model_file.save(tmp_path / "model.npz", model)
    back = model_file.load(tmp_path / "model.npz")
    _same(materials, back.materials)
    _same(restoring, back.restoring)


def test_the_coarser_model_goes_with_a_model(broken_ground, tmp_path):
    other = replace(broken_ground, fixed=~broken_ground.fixed)
    model_file.save(tmp_path / "model.npz", replace(broken_ground, coarser=other))
    back = model_file.load(tmp_path / "model.npz")
    assert np.array_equal(back.fixed, broken_ground.fixed)
    assert back.coarser is not None
    assert np.array_equal(back.coarser.fixed, other.fixed)
    for part in ("mesh", "materials", "surface"):
        _same(getattr(other, part), getattr(back.coarser, part))
    _same(other.faults["main"], back.coarser.faults["main"])
    assert back.coarser.coarser is None


def test_file_of_another_format_is_refused(broken_ground, tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT", 99)
    model_file.save(tmp_path / "model.npz", broken_ground)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 99"):
        model_file.load(tmp_path / "model.npz")
