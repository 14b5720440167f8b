"""What building a model says of its mesh."""

import copy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import test_forward

from afterslip.spec import parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve
from afterslip_workers.engines.viscoelastic.building import STEPS_COST, build_model


def notes_of(spec):
    forward = parse_forward(spec)
    files = LocalFiles(forward.base)
    given = forward.model, resolve(forward, files), files, lambda _: None
    return build_model(*given)[1]["notes"]


def test_notes_on_steps_say_that_the_error_of_the_mesh_holds_a_part_of_their_cost():
    spec = test_forward.coarse()
    assert STEPS_COST not in notes_of(copy.deepcopy(spec))
    # thinner than half an element
    soil = spec["model"]["layers"][0] | {"name": "soil", "bottom": 5, "vp": 5.0}
    spec["model"]["layers"].insert(0, soil)
    found = notes_of(spec)
    assert any("layer soil: the mesh does not follow" in note for note in found)
    assert found.count(STEPS_COST) == 1
