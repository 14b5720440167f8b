"""The readers of uploaded files, each with what its value must be."""

from __future__ import annotations

import json

import numpy as np

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers import hdf_process
from afterslip.readers.grid import read_grid
from afterslip.readers.interface import read_interface, read_outline
from afterslip.readers.meshfile import mesh_format
from afterslip.readers.motion import read_motion
from afterslip.readers.observations import read_observations
from afterslip.readers.places import read_points, read_stations
from afterslip.readers.series import read_neu, read_pos, read_tenv3
from afterslip.readers.series_format import is_series
from afterslip.readers.slip import read_slip
from afterslip.schemas.observation import Series, Sigma

FRAMES = {"geographic": Frame("geographic", 142.4, 38.3), "local": Frame("local")}
SIGMA = Sigma.model_validate({"horizontal": 0.01, "vertical": 0.02, "los": 0.01})
LABEL = "upload"
BOX = (-1e5, 1e5), (-2e5, 2e5)


def _finite(*arrays):
    for values in arrays:
        assert np.isfinite(values).all(), values


def _stations(content, frame):
    found = read_stations(content, frame, LABEL)
    _finite(found.x, found.y)
    assert len(set(found.name)) == len(found)


def _observations(content, frame):
    found = read_observations(content, frame, SIGMA, label=LABEL)
    rows = found.rows()
    _finite(found.x, found.y, rows.value, rows.sigma, rows.epoch, rows.direction)
    assert (rows.sigma > 0).all()


def _motion(content, frame):
    found = read_motion(content, frame, Series(lowpass=0.2), SIGMA, LABEL)
    rows = found.rows("d")
    _finite(found.x, found.y, rows.value, rows.sigma, rows.epoch)
    assert rows.sampled["d"].sampling > 0
    assert rows.moving.all()


def _points(content, frame):
    found = read_points(content, frame, LABEL)
    _finite(found.x, found.y, found.depth)


def _slip(content, frame):
    found = read_slip(content, frame, LABEL)
    _finite(found.points, found.slip)


def _interface(content, frame):
    found = read_interface(content, frame, LABEL)
    _finite(found)
    assert found.shape[1:] == (3,)
    assert found[:, 2].max() <= 0


def _outline(content, frame):
    found = read_outline(content, frame, LABEL)
    _finite(found)
    assert found.shape[1:] == (2,)


def _grid(content, frame):
    found = read_grid(content, frame, *BOX, LABEL)
    _finite(found.x, found.y, found.depth)
    shape = (len(found.x), len(found.y), len(found.depth))
    for values in (found.vp, found.vs, found.rho):
        assert values.shape == shape


def _mesh(content, frame):
    assert mesh_format(content, LABEL) in {"gmsh", "exodus", "vtu"}


def _series(content, frame):
    is_series(content)
    found = []
    for read in (
        lambda: read_tenv3(content, 142.0, 38.0, LABEL),
        lambda: read_pos(content, LABEL),
        lambda: read_neu(content, "A", 142.0, 38.0, LABEL),
    ):
        try:
            series = read()
        except SpecError as error:
            found += error.problems
            continue
        _finite(series["position"], series["sigma"])
        _finite(series.attrs["lon"], series.attrs["lat"])
    if found:
        raise SpecError(found)


READERS = {
    name[1:]: globals()[name]
    for name in ("_stations", "_observations", "_motion", "_points", "_slip",
                 "_interface", "_outline", "_grid", "_mesh", "_series")
}  # fmt: skip


def read(name: str, frame: str, content: bytes) -> str | None:
    """Read a file; return how its refusal fails to name the file, or None."""
    # this process is one that may be ended: another for each file would take a second
    hdf_process._apart = hdf_process.read_here
    try:
        READERS[name](content, FRAMES[frame])
    except SpecError as error:
        problems, text = error.problems, str(error)
        json.dumps(error.as_dicts(), allow_nan=False)
    else:
        return None
    if len(text) > 20_000:
        return f"the refusal is {len(text)} characters long"
    for problem in problems:
        if not problem.path.startswith(LABEL) or not problem.message:
            return f"names no file: {problem}"
    return None
