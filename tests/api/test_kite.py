"""A quadtree that Kite 1.5.8 has written of a scene made up here.

80 by 60 pixels of 0.01 degrees from 13.0 E, 42.6 N; 0.25 m towards the satellite at
13.4 E, 42.9 N, falling as a Gaussian of 0.1 degrees; noise of 2 mm.
"""

from pathlib import Path

import numpy as np
import pytest

from afterslip.errors import SpecError
from afterslip.frame import Frame
from afterslip.readers.kite import write_pixels
from afterslip.readers.observations import read_observations
from afterslip.schemas.observation import Dataset, Sigma
from afterslip.schemas.validation import validate
from afterslip.spec.data import gather

DATA = Path(__file__).parent / "data"
LEAVES = (DATA / "kite-leaves.csv").read_bytes()
SCENE = (DATA / "kite-scene.yml").read_bytes()


def test_leaves_lie_where_the_scene_moved(tmp_path):
    path = tmp_path / "pixels.csv"
    errors = write_pixels(LEAVES, SCENE, path)
    dataset = validate(Dataset, {"name": "d", "file": "pixels.csv", **errors})
    found = read_observations(
        path.read_bytes(),
        Frame("geographic", 13.4, 42.9),
        label="pixels.csv",
        sigma=dataset.sigma,
    )
    assert len(found) == 84
    assert set(found.kind) == {"insar"}
    # the middle of a leaf of several pixels; its mean is less than its middle's value
    away = (found.lon - 13.4) ** 2 + (found.lat - 42.9) ** 2
    expected = 0.25 * np.exp(-away / 0.02)
    assert np.abs(found.los - expected).max() < 0.035
    assert np.sqrt(away[np.argmax(found.los)]) < 0.02
    look = (np.cos(np.deg2rad(190)), np.sin(np.deg2rad(190)))
    flat = np.cos(np.deg2rad(52))
    exact = [look[0] * flat, look[1] * flat, np.sin(np.deg2rad(52))]
    assert np.abs(found.look - exact).max() < 1e-6


def test_leaves_of_two_scenes_are_places_of_their_own(tmp_path):
    parts = []
    for name, lon in (("ascending", b"13.0"), ("descending", b"13.1")):
        path = tmp_path / f"{name}.csv"
        write_pixels(LEAVES, SCENE.replace(b"llLon: 13.0", b"llLon: " + lon), path)
        frame, sigma = Frame("geographic", 13.4, 42.9), Sigma(los=0.01)
        parts.append(read_observations(path.read_bytes(), frame, sigma).rows(name))
    found = gather(parts)
    assert len(found.stations) == 2 * 84
    assert found.x.tolist() == [*parts[0].x, *parts[1].x]


def test_errors_are_those_that_kite_has_fitted(tmp_path):
    errors = write_pixels(LEAVES, SCENE, tmp_path / "p.csv")
    exponential = errors["covariance"]["exponential"]
    assert exponential["length"] == pytest.approx(1.7210533424)
    assert exponential["sigma"] ** 2 == pytest.approx(4.837890566e-6)
    total = exponential["sigma"] ** 2 + errors["sigma"]["los"] ** 2
    assert total == pytest.approx(6.833432594928e-6)
    other = SCENE.replace(b"model_function: exponential", b"model_function: other")
    assert write_pixels(LEAVES, other, tmp_path / "p.csv") == {}


@pytest.mark.parametrize(
    ("leaves", "scene", "words"),
    [
        (LEAVES, SCENE.replace(b"spacing: degree", b"spacing: meter"), "no degree"),
        (LEAVES, SCENE.replace(b"llLon: 13.0", b"llLon: east"), "scene.frame.llLon"),
        (LEAVES, b"a: [", "is no YAML of Kite"),
        (LEAVES, b"a: 1", "has no frame"),
        (LEAVES.replace(b"focal_point_E", b"east"), SCENE, "focal_point_e"),
        (LEAVES.replace(b"0.0002864462", b"nan", 1), SCENE, "line 2"),
    ],
)
def test_files_that_are_no_quadtree_are_refused(tmp_path, leaves, scene, words):
    with pytest.raises(SpecError, match=words):
        write_pixels(leaves, scene, tmp_path / "p.csv")


def test_tags_of_other_libraries_make_nothing():
    evil = b"frame: !!python/object/apply:os.getcwd []"
    with pytest.raises(SpecError, match="is no YAML of Kite"):
        write_pixels(LEAVES, evil, "unused.csv")
