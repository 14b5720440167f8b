"""A name that is the campaign's data and an upload's never means old data unasked."""

import pytest
import tiny_worker

HEAD = "station,x_km,y_km,east,north,up\n"
OLD = HEAD + "A,0,0,1.0,0.2,0.1\nB,9,3,0.5,0.1,0.0\n"
NEW = HEAD + "A,0,0,9.0,9.2,9.1\nB,9,3,8.5,8.1,8.0\nC,-9,3,8.5,8.1,8.0\n"
SIGMA = {"horizontal": 0.01, "vertical": 0.03}
GNSS = {"name": "gnss", "sigma": SIGMA}


@pytest.fixture
def submit(client, worker):
    """Return a function that submits a campaign with data of its own."""
    worker.gate.clear()  # nothing is computed here

    def act():
        ref = client.post("/v1/files", content=OLD.encode()).json()["ref"]
        spec = tiny_worker.spec(datasets=[{**GNSS, "file": ref}])
        made = client.post("/v1/campaigns", json=spec)
        assert made.status_code == 201, made.text
        return made.json()

    return act


def upload(client, **body):
    answer = client.post("/v1/datasets", json={**GNSS, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def invert(client, campaign, name):
    body = {"campaign": campaign["id"], "name": "i", "datasets": [name]}
    return client.post("/v1/inversions", json=body)


def test_a_name_that_is_also_a_later_upload_is_refused_with_both_ways_out(
    client, submit
):
    campaign = submit()
    identity = upload(client, csv=NEW)
    answer = invert(client, campaign, "gnss")
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert (error["path"], error["value"]) == ("datasets[0]", "gnss")
    assert "one of the campaign's own data sets" in error["message"]
    assert "one that you uploaded later" in error["message"]
    assert identity in error["hint"]
    assert "by another name" in error["hint"]
    assert client.get("/v1/inversions").json()["items"] == []
    # as the hint says: the upload by its id
    assert invert(client, campaign, identity).status_code == 201
    # and the campaign's own after it was sent again as it is
    own = campaign["spec"]["datasets"][0]
    upload(client, **own)
    assert invert(client, campaign, "gnss").status_code == 201


def test_other_settings_of_the_same_file_are_other_data(client, submit):
    campaign = submit()
    upload(client, csv=OLD, sigma={"horizontal": 0.1, "vertical": 0.3})
    assert invert(client, campaign, "gnss").status_code == 422


def test_the_spec_decides_over_data_that_were_there_before_it(client, submit):
    upload(client, csv=NEW)
    assert invert(client, submit(), "gnss").status_code == 201
