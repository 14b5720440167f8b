"""Ctrl-C on ``afterslip run``, and the same command again."""

from __future__ import annotations

import os
import re
import signal
import time

import arena
import pytest
import yaml

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


class Run(arena.Service):
    """``afterslip run``, which is a service as long as it runs."""

    def start(self):
        spec = self.folder / "spec.yaml"
        spec.write_text(yaml.safe_dump(arena.spec()))
        log = self.folder / f"run-{len(self._sessions)}.log"
        out = str(self.store.parent)
        command = ["run", str(spec), "--out", out, "--workers", "2"]
        self.process = arena.start(log, arena.AFTERSLIP, *command)
        self._sessions.append(self.process.pid)
        found = arena.until(
            lambda: re.search(r"http://[\d.:]+", log.read_text()), 90, self.log
        )
        self.url = found[0]
        return self

    def campaign(self):
        """Return the id of the only campaign, once it is there."""
        return arena.until(lambda: self.get("/campaigns")["items"], 120, self.log)[0][
            "id"
        ]


def test_same_command_goes_on(tmp_path, new_service, with_models, undisturbed, record):
    out = tmp_path / "out"
    run = Run(tmp_path / "runs", str(out / "afterslip.sqlite"), out / "store")
    with_models(run.store)
    try:
        run.start()
        campaign = run.campaign()
        run.hold_solving(campaign)
        measure = arena.Measure(run, campaign, "Ctrl-C on `afterslip run`, run again")
        # a terminal tells everybody in it
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.process.wait(30) == 130, run.log()
        stopped = time.monotonic() - measure.began
        arena.until(lambda: not arena.session(run.process.pid), 20, "all are gone")
        measure.began += stopped
        run.start()
        assert run.campaign() == campaign
        measure.recovered(run)
        assert run.process.wait(120) == 0, run.log()
    finally:
        run.stop()
    looking = new_service(run.database, store=run.store, workers=1).start()
    row = measure.close(looking, undisturbed, record)
    assert row["groups again"] <= 2
    assert row["result"] == "bitwise"
