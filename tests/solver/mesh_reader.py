"""The reader of mesh files, for a process of its own."""

from __future__ import annotations

import numpy as np

from afterslip_solver.mesh import MeshError, import_mesh


def read(path: str) -> str | None:
    """Read a mesh; return what is wrong with its refusal, or None."""
    try:
        found = import_mesh(path).mesh
    except MeshError as error:
        return None if str(error) else "the refusal says nothing"
    assert np.isfinite(found.nodes).all()
    assert found.cells.min() >= 0
    assert found.cells.max() < found.n_vertex
    return None
