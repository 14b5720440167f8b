"""``afterslip worker``."""

from __future__ import annotations

import subprocess
from typing import Annotated

import typer


def worker(
    scheduler: Annotated[str, typer.Argument(help="The scheduler's tcp://host:port.")],
    workers: Annotated[
        int, typer.Option(min=1, help="Processes; one a GPU where there are GPUs.")
    ] = 1,
    gpu: Annotated[
        bool | None, typer.Option("--gpu/--cpu", help="By default what is there.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the worker.")] = None,
) -> None:
    """Join a Dask scheduler as a worker, until stopped.

    The service's store must be visible here under the same path.
    """
    from afterslip_service.placement.launch import has_gpu, worker_command

    wanted = has_gpu() if gpu is None else gpu
    command = worker_command(scheduler, workers, gpu=wanted, name=name)
    process = subprocess.Popen(command)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        # the terminal has told the worker as well: let it end in good order
        code = process.wait()
    raise typer.Exit(code)
