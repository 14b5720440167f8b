"""The store's disk fills up."""

from __future__ import annotations

import shutil
import subprocess

import arena
import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_campaign_waits_for_space(
    new_service, tmp_path, small_disk, undisturbed, with_models, record
):
    service = new_service(str(tmp_path / "db.sqlite"), store=small_disk / "store")
    with_models(service.store)
    service.start()
    campaign = service.submit()
    service.hold_solving(campaign)
    measure = arena.Measure(service, campaign, "store full, then freed and resumed")
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        try:
            for block in (1 << 20, 1 << 12):
                while shutil.disk_usage(small_disk).free >= block:
                    stream.write(bytes(block))
        except OSError:
            pass

    service.go_on()

    def paused():
        shown = service.get(f"/campaigns/{campaign}")
        assert shown["state"] not in {"failed", "complete"}, shown
        return shown if shown["state"] == "paused" else None

    shown = arena.until(paused, 60, service.log)
    assert shown["error"]["class"] == "store_full"
    assert "space" in shown["error"]["message"]

    # what is still refused comes late: it does not pause again
    ballast.unlink()
    service.post(f"/campaigns/{campaign}/resume")
    row = measure.close(service, undisturbed, record)
    assert row["groups again"] == 0, "the results waited on their workers' disk"
    assert row["result"] == "bitwise"
