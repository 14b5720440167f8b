"""SIGTERM to a worker of its own, as `afterslip worker` starts it on a GPU machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import numpy as np
from gpu import Gpu
from stage import MESH, memory, opened, until
from watched import NEAR, Outcome, Watched

WORKER = "import typer; from afterslip_service.commands.worker import worker as w"


def drained(
    folder: Path,
    gpu: Gpu | None,
    content: dict[str, Any],
    reference: np.ndarray | None,
    outcome: Outcome,
) -> None:
    """One worker may finish its group, another has to give it back."""
    if gpu is None:
        outcome.skipped.append("memory of the GPU")
    own = folder / "drain"
    own.mkdir()
    shutil.copy(folder / MESH, own)
    models = Path("store") / "models"
    shutil.copytree(folder / models, own / models, copy_function=os.link)
    cluster = distributed.LocalCluster(
        n_workers=0, host="127.0.0.1", dashboard_address=None, silence_logs=50
    )
    with cluster:
        stage = opened(own, gpu, cluster.scheduler_address)
        watch = Watched(stage, content, memory(gpu))
        watch.reference = reference
        try:
            _finishes(watch, cluster.scheduler_address, outcome)
            _gives_back(watch, cluster.scheduler_address, outcome)
        finally:
            stage.close()


def _finishes(watch: Watched, address: str, outcome: Outcome) -> None:
    stage = watch.stage
    with _worker(address, watch, 60.0) as process:
        watch.campaign = stage.submit(watch.content)
        stage.solving(watch.campaign, 0, 60)
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        found = stage.accepted(watch.campaign, 0, 60)
        assert process.wait(30) == 0, f"the worker ended with {process.returncode}"
        outcome.seconds("finished", time.perf_counter() - began)
        assert len(stage.attempts(watch.campaign)) == 1, "it was solved twice"
        watch.compare(found, outcome)
        if watch.gpu:
            watch.freed(watch.base + NEAR)
            outcome.bytes("after", memory(stage.gpu))


def _gives_back(watch: Watched, address: str, outcome: Outcome) -> None:
    stage, campaign = watch.stage, watch.handle
    with _worker(address, watch, 0.0) as process:
        before = stage.again(campaign)
        token = stage.solving(campaign, before, 60)
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, f"the worker ended with {process.returncode}"
        outcome.seconds("given_back", time.perf_counter() - began)
        attempt = stage.ended(campaign, token, 20)
        assert attempt["state"] != "accepted", attempt
        group = campaign.groups()[0]
        assert group["state"] == "waiting", group
        outcome.text = f"given back as {(attempt['error'] or {}).get('class')}"
        if watch.gpu:
            watch.freed(watch.base + NEAR)


@contextmanager
def _worker(
    address: str, watch: Watched, drain_s: float
) -> Iterator[subprocess.Popen[bytes]]:
    kind = "--gpu" if watch.gpu else "--cpu"
    log = watch.stage.folder / "worker.log"
    program = [sys.executable, "-c", f"{WORKER}; typer.run(w)"]
    with log.open("ab") as stream:
        process = subprocess.Popen(
            [*program, address, kind, "--drain", str(drain_s)],
            stdout=stream,
            stderr=stream,
        )
        watch.stage.command = process
        try:
            yield process
        except BaseException:
            print(log.read_text(errors="replace")[-3000:], flush=True)
            raise
        finally:
            watch.stage.command = None
            if process.poll() is None:
                # the second signal ends what runs
                process.send_signal(signal.SIGTERM)
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    process.kill()
            until(lambda: not watch.stage.children(), 20, "its children are gone")
