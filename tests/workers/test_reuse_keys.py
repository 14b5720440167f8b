"""Keys of sources that are stored: what earlier releases wrote is found again."""

import hashlib
from dataclasses import replace

import numpy as np

from afterslip.frame import Frame
from afterslip_solver.mesh.slit_surface import two_sided
from afterslip_workers.engines.viscoelastic import keys

FRAME = Frame("local")


def written_by_hand(model):
    """The digest of a model as 0.1.0 made it, absent arrays as ``None``."""
    m, trace = model.materials, two_sided(model)
    total = hashlib.sha256()
    for part in (
        *(model.mesh.nodes, model.mesh.elements, model.fixed),
        *(m.lam, m.mu, m.rho, m.viscosity, m.kelvin_viscosity, m.kelvin_modulus),
        *(trace.nodes, trace.faces),
    ):
        if part is None:
            total.update(b"None")
        else:
            total.update(f"{part.dtype.str}{part.shape}".encode())
            total.update(part.tobytes())
    return f"sha256:{total.hexdigest()}"


def with_materials(model, **changes):
    return replace(model, materials=replace(model.materials, **changes))


def test_models_of_built_in_rheologies_have_the_keys_that_they_had(broken_ground):
    mu = broken_ground.materials.mu
    burgers = with_materials(
        broken_ground,
        viscosity=np.full(len(mu), 1e19),
        kelvin_viscosity=np.full(len(mu), 1e18),
        kelvin_modulus=0.5 * mu,
    )
    for model in (broken_ground, burgers):
        assert keys._model(model, FRAME) == written_by_hand(model)


def test_every_number_of_an_added_rheology_is_part_of_the_key(broken_ground):
    mu = broken_ground.materials.mu[:, None]
    eta = np.full(mu.shape, 1e18)
    first = with_materials(broken_ground, branch_viscosity=eta, branch_modulus=mu)
    found = {keys._model(broken_ground, FRAME), keys._model(first, FRAME)}
    for name in ("branch_viscosity", "branch_modulus"):
        changed = getattr(first.materials, name).copy()
        changed[-1] *= 1.001
        found.add(keys._model(with_materials(first, **{name: changed}), FRAME))
    assert len(found) == 4
