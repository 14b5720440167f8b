"""Birth and death of a worker: no computing process may outlive it."""

from __future__ import annotations

import atexit
from typing import Any

from distributed import Worker, WorkerPlugin

from afterslip_workers.supervisor import pool

atexit.register(pool.close)


class ChildKeeper(WorkerPlugin):
    """Kills the children of a worker when it closes in good order.

    When it does not, the kernel and the end of their input do (see ``child``).
    """

    name = "afterslip-children"

    def teardown(self, worker: Worker) -> None:
        """Kill the children; called by Dask when the worker closes."""
        pool.close()


async def dask_setup(worker: Any) -> None:
    """Preload hook: ``dask worker --preload afterslip_workers.lifecycle``."""
    await worker.plugin_add(ChildKeeper())
