"""Workers that do not build a model get ready for its groups meanwhile."""

import time

import psutil

from afterslip_service.placement.cluster import Cluster
from afterslip_workers.messages import Envelope


def computing():
    """Processes that compute, below this one."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if "afterslip_workers.child" in process.cmdline():
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


def test_every_worker_has_a_computing_process_once_a_model_is_being_built(tmp_path):
    before = computing()
    cluster = Cluster("local", workers=2)
    try:
        cluster.submit(
            Envelope(
                token="a1",
                kind="model",
                campaign="c1",
                physics="viscoelastic",
                spec={},
                store=str(tmp_path),
            )
        )
        end = time.monotonic() + 60.0
        while len(computing() - before) < 2:
            assert time.monotonic() < end
            time.sleep(0.1)
        # the one that had the model has no second one
        time.sleep(2.0)
        assert len(computing() - before) == 2
    finally:
        cluster.close()
