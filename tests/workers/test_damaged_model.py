"""A group whose cached model was damaged since its campaign began."""

import json
import sys
from pathlib import Path

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
