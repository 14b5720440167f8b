"""The example of a plane and synthetic data, as its comments tell to use it."""

from pathlib import Path

import numpy as np
import pytest

from afterslip.schemas.campaign import Campaign
from afterslip.spec import load, parse_campaign, parse_forward
from afterslip.spec.files import LocalFiles
from afterslip.spec.inputs import resolve

EXAMPLE = Path(__file__).parents[2] / "examples" / "normal_fault"


def test_forward_run_and_campaign_are_of_one_model_and_their_files_fit(tmp_path):
    forward = parse_forward(load(EXAMPLE / "forward.yaml"), EXAMPLE)
    inputs = resolve(forward, LocalFiles(EXAMPLE))
    assert inputs.points is not None
    stations = (EXAMPLE / "stations.csv").read_text().splitlines()
    rows = [f"{line},0,0,0,0.003,0.003,0.01" for line in stations[1:]]
    head = f"{stations[0]},east,north,up,sigma_e,sigma_n,sigma_u"
    (tmp_path / "offsets.csv").write_text("\n".join([head, *rows]) + "\n")
    campaign = parse_campaign(load(EXAMPLE / "campaign.yaml"), tmp_path)
    data = resolve(campaign, LocalFiles(tmp_path)).datasets["gnss"]
    assert len(data) == 3 * len(inputs.points)
    assert campaign.model == forward.model
    # the origin is on the upper edge, which is what the comment says
    plane = campaign.model.faults[0].plane
    assert plane is not None
    assert (plane.x, plane.y) == (0, 0)


@pytest.mark.slow
def test_the_slip_of_the_example_is_found_again(tmp_path):
    from afterslip import Client
    from afterslip_workers.engines.viscoelastic.forward import run_forward
    from afterslip_workers.engines.viscoelastic.synthetic import write_observations

    truth = run_forward(EXAMPLE / "forward.yaml")
    write_observations(truth, tmp_path / "offsets.csv", (0.003, 0.01), 0)
    campaign = Campaign.from_dict(load(EXAMPLE / "campaign.yaml"), tmp_path)
    with Client.embedded(tmp_path / "service", workers=2) as client:
        handle = client.submit(campaign).wait(timeout=280)
        (inversion,) = handle.inversions()
        low, high = inversion.magnitude_interval or (np.nan, np.nan)
    # 95 % of the draws, and the synthetic data are of this very mesh
    assert low - 0.03 < truth.attrs["magnitude"] < high + 0.03
    assert inversion.peak_slip == pytest.approx(0.7, abs=0.2)
