"""A group whose cached model was damaged since its campaign began."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from small_campaign import SmallCampaign, stored

from afterslip_workers import entry
from afterslip_workers.messages import read_manifest


def test_group_builds_a_damaged_model_again(tmp_path):
    """A group that is solved again may be the first to read the model for months."""
    campaign = SmallCampaign(tmp_path)
    made = stored(entry.execute(campaign.envelope("model", "m1")))
    entry.promote(tmp_path, "c1", read_manifest(made))
    (path,) = (tmp_path / "models").rglob("*.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    entry.close_children()
    solved = stored(entry.execute(campaign.group("g1", 1, [4, 5])))
    entry.promote(tmp_path, "c1", read_manifest(solved))
    (path,) = (tmp_path / "models").rglob("*.npz")
    assert path.read_bytes() == whole


def test_bytes_that_can_be_read_but_are_others_are_not_taken(tmp_path):
    campaign = SmallCampaign(tmp_path)
    first = stored(entry.execute(campaign.envelope("model", "m1")))
    (path,) = (tmp_path / "models").rglob("*.npz")
    whole = path.read_bytes()
    with np.load(path) as arrays:
        read = dict(arrays)
    read["materials.mu"] = 1.001 * read["materials.mu"]
    np.savez(path, **read)
    entry.close_children()
    again = stored(entry.execute(campaign.envelope("model", "m2")))
    assert first["n_unknowns"] == again["n_unknowns"]
    assert not again["from_cache"]
    (path,) = (tmp_path / "models").rglob("*.npz")
    assert path.read_bytes() == whole


def test_process_that_built_the_model_does_not_read_it_for_its_first_group(tmp_path):
    campaign = SmallCampaign(tmp_path)
    made = stored(entry.execute(campaign.envelope("model", "m1")))
    entry.promote(tmp_path, "c1", read_manifest(made))
    shutil.rmtree(tmp_path / "models")
    stored(entry.execute(campaign.group("g1", 1, [4, 5])))
    # who needs it from the store builds it again, and stores it
    assert not (tmp_path / "models").exists()


def test_model_that_was_built_again_differently_is_refused(tmp_path):
    campaign = SmallCampaign(tmp_path)
    entry.promote(
        tmp_path,
        "c1",
        read_manifest(stored(entry.execute(campaign.envelope("model", "m1")))),
    )
    noted = tmp_path / "campaigns/c1/model.json"
    facts = json.loads(noted.read_text())
    facts["quality"]["gamma_min"] *= 1.0 + 1e-15
    noted.write_text(json.dumps(facts))
    entry.close_children()
    receipt = entry.execute(campaign.group("g1", 1, [4, 5]))
    assert receipt["error"]["class"] == "internal"
    assert "not the one that the campaign began with" in receipt["error"]["message"]
