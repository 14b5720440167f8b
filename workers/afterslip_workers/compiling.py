"""The process that compiles a GPU's kernels for tasks to come.

Started as ``python -m afterslip_workers.compiling PARENT_PID`` by a worker that starts:
what it compiles lies on disk before the first task has imported, and made a mesh. What
runs on the host is compiled by further ones, which end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

import structlog

from afterslip_solver.compile_ahead import compile_ahead
from afterslip_solver.jit.ahead import compile_listed, missing
from afterslip_workers.machine.limit import shares
from afterslip_workers.process.parent import die_with_parent

# as a nice value: tasks go first
_GIVES_WAY = 5
# processes for as many functions as are listed
_MOST = 8

log = structlog.get_logger()


def main() -> None:
    """Compile, and end."""
    die_with_parent(int(sys.argv[1]))
    os.nice(_GIVES_WAY)
    cores = len(os.sched_getaffinity(0)) // shares()
    # none where a machine has compiled before
    count = min(cores, _MOST, len(missing("gpu")))
    # forked: what must be imported takes as long as a helper's share of the work
    fork = multiprocessing.get_context("fork")
    helpers = [
        fork.Process(target=_help, args=(os.getpid(),)) for _ in range(count - 1)
    ]
    for helper in helpers:
        helper.start()
    try:
        compile_ahead("gpu")
    except Exception:
        # what fails here fails again in the first task, whose attempt says so
        log.exception("nothing is compiled ahead of the first task")
    for helper in helpers:
        helper.join()


def _help(parent: int) -> None:
    die_with_parent(parent)
    compile_listed("gpu")


if __name__ == "__main__":
    main()
