"""Birth and death of a worker: no computing process may outlive it."""

from __future__ import annotations

import asyncio
import atexit
from typing import Any

from distributed import Worker, WorkerPlugin

from afterslip_workers.machine import device
from afterslip_workers.process.drain import LIMIT_S, drain, requested
from afterslip_workers.process.pools import compilers, pool, writers

_LOOK_EVERY_S = 0.5

atexit.register(pool.close)
atexit.register(compilers.close)
atexit.register(writers.close)


class ChildKeeper(WorkerPlugin):
    """Kills the children of a worker when it closes in good order.

    When it does not, the kernel and the end of their input do (see ``child``).
    """

    name = "afterslip-children"

    def __init__(self) -> None:
        self._watch: asyncio.Task[None] | None = None

    def setup(self, worker: Worker) -> None:
        """Look for the end; called by Dask when the worker is ready."""
        self._watch = asyncio.ensure_future(_await_drain(worker))

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """Kill the children; called by Dask when the worker closes."""
        # an attempt that waits for its turn must not take that of a killed one
        drain.ask(LIMIT_S)
        pool.close()
        compilers.close()
        writers.close()


async def _await_drain(worker: Any) -> None:
    """Wait until this worker is asked to end, and end it in good order."""
    while (limit := requested()) is None:
        await asyncio.sleep(_LOOK_EVERY_S)
    drain.ask(limit)
    # from now on the scheduler sends nothing more
    await worker.scheduler.retire_workers(
        workers=[worker.address], close_workers=False, remove=False
    )
    while drain.busy:
        await asyncio.sleep(_LOOK_EVERY_S)
    # one more round, in which the last receipt leaves
    await asyncio.sleep(_LOOK_EVERY_S)
    asyncio.ensure_future(worker.close(nanny=True, reason="drained"))  # noqa: RUF006


async def dask_setup(worker: Any) -> None:
    """Preload hook: ``dask worker --preload afterslip_workers.lifecycle``."""
    if device.graphics():
        if worker.state.nthreads > 1:
            # one process solves for all, others write what it solved
            pool.limit = 1
        # where only processors solve, the service, which starts now, needs them
        pool.start_ahead()
        compilers.start_ahead()
    # these import what the computing process, which is needed first, imports meanwhile
    from afterslip_common.observe import logs, telemetry
    from afterslip_workers.process.delivery import deliverer
    from afterslip_workers.process.use import measure

    logs.inherit()
    telemetry.start("worker")
    # Dask itself looks at this process alone, which only supervises
    worker.metrics["afterslip"] = lambda _: measure()
    # what an earlier worker on this machine could not deliver
    deliverer.kick()
    await worker.plugin_add(ChildKeeper())
