"""Tokens that read one campaign and nothing else."""

from __future__ import annotations

import httpx
import pytest
import tiny_worker

from afterslip_service.db import migrate
from afterslip_service.engine.access import Role

# one is enough: nothing here depends on it
pytestmark = pytest.mark.databases("sqlite")

CSV = "station,x_km,y_km,east,north,up\nA,0,0,1,1,1\n"
SIGMA = {"horizontal": 0.01, "vertical": 0.03}


@pytest.fixture
def server(serve):
    return serve(auth=True)


@pytest.fixture
def admin(server, new_token):
    return signed(server, new_token("root", Role.ADMIN)[1])


def signed(server, secret):
    return httpx.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {secret}"}, timeout=20
    )


def submit(admin, name):
    ref = admin.post("/v1/files", content=CSV.encode()).json()["ref"]
    spec = tiny_worker.spec(
        name,
        datasets=[{"name": "gnss", "file": ref, "sigma": SIGMA}],
        inversions=[{"name": "slip", "datasets": ["gnss"], "smoothness": 1.0}],
    )
    answer = admin.post("/v1/campaigns", json=spec)
    assert answer.status_code == 201, answer.text
    return answer.json()


def link(admin, identity, **changes):
    body = {"name": "link", "user": "reader", "role": "viewer", "campaign": identity}
    return admin.post("/v1/tokens", json={**body, **changes})


def test_a_link_reads_its_campaign_and_nothing_else(server, admin):
    shared, other = submit(admin, "shared"), submit(admin, "other")
    made = link(admin, shared["id"]).json()
    assert made["campaign"] == shared["id"]
    reader = signed(server, made["token"])
    assert reader.get("/v1/session").json()["campaign"] == shared["id"]
    here = f"/v1/campaigns/{shared['id']}"
    for path in (here, f"{here}/groups", f"{here}/explain"):
        assert reader.get(path).status_code == 200, path
    inversion, foreign = shared["inversions"][0], other["inversions"][0]
    assert reader.get(f"/v1/inversions/{inversion}").status_code == 200
    listed = reader.get("/v1/inversions", params={"campaign": shared["id"]}).json()
    assert [one["id"] for one in listed["items"]] == [inversion]
    for asked in ([other["id"]], [shared["id"], other["id"]], []):
        answer = reader.get("/v1/inversions", params={"campaign": asked})
        assert answer.status_code == 403
    # every route of the contract that is not below this campaign is closed
    paths = admin.get("/openapi.json").json()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            if "x-role" not in operation or path == "/v1/session":
                continue  # open to everybody
            wrong = path.replace("{campaign}", other["id"])
            wrong = wrong.replace("{inversion}", foreign)
            answer = reader.request(method, wrong, json={})
            assert answer.status_code in (403, 405), (method, path, answer.text)
    # below it, nothing is changed
    changing = [("DELETE", here), ("POST", f"{here}/cancel"), ("PATCH", here)]
    for method, path in changing:
        assert reader.request(method, path, json={"name": "x"}).status_code == 403


def test_a_link_ends_when_it_is_revoked_with_its_sessions(server, admin):
    shared = submit(admin, "shared")
    made = link(admin, shared["id"]).json()
    with httpx.Client(base_url=server.url) as page:
        signing = page.post("/v1/session", json={"token": made["token"]})
        assert signing.json()["campaign"] == shared["id"]
        here = f"/v1/campaigns/{shared['id']}"
        assert page.get(here).status_code == 200
        assert page.get("/v1/campaigns").status_code == 403
        assert admin.delete(f"/v1/tokens/{made['id']}").status_code == 204
        assert page.get(here).status_code == 401


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"role": "submitter"}, 422), ({"days": None}, 422), ({"campaign": "x"}, 404)],
)
def test_a_link_only_reads_expires_and_is_of_a_campaign(admin, changes, status):
    shared = submit(admin, "shared")
    assert link(admin, shared["id"], **changes).status_code == status


def test_links_do_not_become_tokens_for_all_on_the_way_down(database, new_token):
    from afterslip_service.db import tokens

    left, _ = new_token("ada", Role.VIEWER)
    with database.write() as connection:
        tokens.create(
            connection, name="link", user="r", role=Role.VIEWER, expires_at=None,
            campaign="c",
        )  # fmt: skip
    migrate.downgrade(database, "0007")
    with database.read() as connection:
        rows = connection.exec_driver_sql("select id from tokens").scalars().all()
    assert rows == [left.id]
