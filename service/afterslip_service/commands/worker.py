"""``afterslip worker``."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from afterslip_service import logs
from afterslip_service.umask import private_files

KILL_AFTER_S = 5.0
SECOND = 2
NANNY = "DASK_DISTRIBUTED__NANNY__PRELOAD"
SCRATCH = "DASK_TEMPORARY_DIRECTORY"


@private_files()
def worker(
    scheduler: Annotated[str, typer.Argument(help="The scheduler's tcp://host:port.")],
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; one a GPU where there are GPUs.")
    ] = 1,
    gpu: Annotated[
        bool | None, typer.Option("--gpu/--cpu", help="By default what is there.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the worker.")] = None,
    drain: Annotated[
        float,
        typer.Option(min=0.0, help="s that running groups may take after SIGTERM."),
    ] = 600.0,
    json_logs: Annotated[
        bool, typer.Option("--json-logs", help="Logs for machines.")
    ] = False,
) -> None:
    """Join a Dask scheduler as a worker, until stopped.

    A store that is a folder must be visible here under the same path. SIGTERM or
    Ctrl-C lets the groups that run finish, or leave a checkpoint when their time is
    over; a second one stops at once.
    """
    from afterslip_service.placement.launch import has_gpu, worker_command
    from afterslip_service.placement.local import gpus
    from afterslip_workers.entry import SHARES_ENV

    logs.choose(json=json_logs)
    # the nannies write lines of their own
    os.environ.setdefault(NANNY, "['afterslip_common.observe.logs']")
    wanted = has_gpu() if gpu is None else gpu
    os.environ.setdefault(SHARES_ENV, str(len(gpus()) if wanted else workers))
    command = worker_command(scheduler, workers, gpu=wanted, name=name)
    with tempfile.TemporaryDirectory(
        prefix="afterslip-worker-", dir=os.environ.get(SCRATCH)
    ) as folder:
        # Dask puts it in front of Python's path; this one is closed to other accounts
        os.environ[SCRATCH] = folder
        raise typer.Exit(_watch(command, Path(folder) / "drain", drain))


def _watch(command: list[str], note: Path, drain: float) -> int:
    """Run the workers; tell them by a file that they are to end.

    Signals come to us alone: Dask's own answer to them is to drop what runs.
    """
    known = {"AFTERSLIP_DRAIN": str(note), "AFTERSLIP_DRAIN_S": str(drain)}
    process = subprocess.Popen(command, env={**os.environ, **known}, process_group=0)
    asked: list[float] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        asked.append(time.monotonic())
        note.touch()
        if len(asked) == SECOND:
            os.killpg(process.pid, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while True:
        try:
            code = process.wait(0.5)
        except subprocess.TimeoutExpired:
            late = len(asked) >= SECOND and time.monotonic() - asked[1] > KILL_AFTER_S
            if late:
                os.killpg(process.pid, signal.SIGKILL)
            continue
        # asked to end, and ended: what Dask calls it is of no interest
        return 0 if len(asked) == 1 else code
