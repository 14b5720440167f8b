"""The server of buckets that holds the store dies, or nobody reaches it."""

from __future__ import annotations

import time

import arena
import pytest
from objects import Objects

from afterslip_workers import entry

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

AWAY_S = 8.0
BUCKET = "bucket"


class InBucket(arena.Service):
    """A service whose store is a bucket; its attempts work in the spool."""

    def __init__(self, folder, objects):
        self.objects, self.spool = objects, folder / "spool"
        environment = {**objects.environment, "AFTERSLIP_SPOOL": str(self.spool)}
        # places are remembered by their address
        address = f"s3://{BUCKET}/{objects.way.port}"
        super().__init__(folder, str(folder / "db.sqlite"), address, **environment)

    @property
    def attempts(self):
        """The folder in the spool for this store; it comes with the first attempt."""
        return next(self.spool.glob("*"), self.spool)

    def greens(self, campaign):
        return entry.open_store(self.store).zarr(f"campaigns/{campaign}/greens.zarr")

    def stamps(self, campaign, index):
        """Return checksum and number of writes of every object of a group."""
        backend, root = (
            entry.open_store(self.store),
            f"campaigns/{campaign}/greens.zarr",
        )
        writes = self.objects.writes()
        return {
            key: (backend.sha256(key), writes[f"/{self.store[5:]}/{key}"])
            for key in backend.keys(root)
            if key.removeprefix(root).split("/")[2:4] == ["c", str(index)]
        }


@pytest.fixture
def service(tmp_path, monkeypatch):
    objects = Objects(tmp_path)
    made = InBucket(tmp_path / "service", objects)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    try:
        objects.start()
        url = f"{objects.environment['AWS_ENDPOINT_URL']}/{BUCKET}"
        arena.http.put(url).raise_for_status()
        yield made.start()
    finally:
        made.stop()
        objects.close()


def killed(objects):
    objects.kill()
    time.sleep(AWAY_S)
    objects.start()


def cut_off(objects):
    objects.way.cut()
    time.sleep(AWAY_S)
    objects.way.restore()


@pytest.mark.parametrize("harm", [killed, cut_off])
def test_nothing_is_solved_twice_when_the_bucket_was_away(
    service, undisturbed, record, harm
):
    campaign = service.submit()
    service.hold_solving(campaign)
    fault = f"server of buckets {harm.__name__.replace('_', ' ')} for {AWAY_S:g} s"
    measure = arena.Measure(service, campaign, fault)
    assert all(
        min(stamp[1] for stamp in s.values()) for _, s in measure.before.values()
    )
    service.go_on()
    harm(service.objects)
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 0
    assert row["result"] == "bitwise"
