"""A client that a generator makes of OpenAPI works a real service by its own types."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_worker

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

UV = [sys.executable, "-m", "uv", "run", "--quiet", "--no-project", "--isolated"]
PAGE = Path(__file__).parents[2] / "docs/api.md"
GENERATOR = [*UV, "--with", "openapi-python-client==0.29.1", "openapi-python-client"]

USE = """
import json, sys, time
from afterslip_client import Client
from afterslip_client.api.campaigns import (
    cancel_campaign_v1_campaigns_campaign_cancel_post as cancel,
    create_campaign_v1_campaigns_post as create,
    list_campaigns_v1_campaigns_get as listed,
    plan_campaign_v1_plan_post as plan,
    show_campaign_v1_campaigns_campaign_get as show,
)
from afterslip_client.api.datasets import create_dataset_v1_datasets_post as data
from afterslip_client.api.groups import (
    list_groups_v1_campaigns_campaign_groups_get as groups,
)
from afterslip_client.api.inversions import (
    create_inversion_v1_inversions_post as invert,
    read_result_v1_inversions_inversion_result_get as result,
    show_inversion_v1_inversions_inversion_get as shown,
)
from afterslip_client.models import (
    CampaignResponse, CampaignState, DatasetRequest, InversionRequest, Problem,
    ViscoelasticCampaign,
)

client = Client(base_url=sys.argv[1])
spec = ViscoelasticCampaign.from_dict(json.loads(sys.argv[2]))
planned = plan.sync(client=client, body=spec)
assert planned.sources > 0 and planned.geometry, planned
made = create.sync(client=client, body=spec, idempotency_key="once")
assert isinstance(made, CampaignResponse), made
again = create.sync(client=client, body=spec, idempotency_key="once")
assert again.id == made.id
for _ in range(400):
    now = show.sync(made.id, client=client)
    if now.state == CampaignState.COMPLETE:
        break
    time.sleep(0.05)
assert now.progress.accepted == now.progress.total > 0, now
assert [c.id for c in listed.sync(client=client).items] == [made.id]
assert all(g.attempts == 1 for g in groups.sync(made.id, client=client).items)
request = DatasetRequest.from_dict(json.loads(sys.argv[3]))
stored = data.sync(client=client, body=request)
assert stored.n_observations == 2, stored
asked = InversionRequest.from_dict(
    {"campaign": made.id, "name": "mine", "datasets": [stored.name]}
)
mine = invert.sync(client=client, body=asked)
assert mine.name == "mine"
while shown.sync(mine.id, client=client).state != "accepted":
    time.sleep(0.05)
assert result.sync(mine.id, client=client).payload.read() == b"CDF tiny"
wrong = asked.from_dict({**asked.to_dict(), "datasets": ["nothing"]})
refused = invert.sync(client=client, body=wrong)
assert isinstance(refused, Problem) and refused.status in (404, 422), refused
assert isinstance(show.sync("none", client=client), Problem)
assert isinstance(cancel.sync(made.id, client=client), (CampaignResponse, Problem))
print("done")
"""


@pytest.fixture
def generated(client, tmp_path):
    """Generate the client; skip where the generator cannot be installed."""
    try:
        subprocess.run([*GENERATOR, "--version"], check=True, timeout=200, cwd="/")
    except subprocess.SubprocessError:
        pytest.skip("openapi-python-client cannot be installed here")
    api = tmp_path / "openapi.json"
    api.write_text(client.get("/openapi.json").text)
    (config,) = re.findall(r'title="bytes.yaml"\n(.*?)```', PAGE.read_text(), re.DOTALL)
    (tmp_path / "bytes.yaml").write_text(config)
    command = [*GENERATOR, "generate", "--path", str(api), "--output-path", "made",
               "--config", "bytes.yaml"]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    # it leaves out what it does not understand, and says so
    assert "WARNING" not in done.stdout + done.stderr, done.stdout
    return tmp_path / "made"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_generated_client_goes_from_plan_to_inversion(client, generated):
    api = client.get("/openapi.json").json()["components"]["schemas"]
    (example,) = api["DatasetRequest"]["examples"]
    url = str(client.base_url)
    command = [*UV, "--with", "httpx", "--with", "attrs", "--with", "python-dateutil",
               "python", "-c", USE, url, json.dumps(tiny_worker.spec()),
               json.dumps(example)]  # fmt: skip
    done = subprocess.run(
        command, cwd=generated, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
