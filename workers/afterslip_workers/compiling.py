"""The process that compiles a GPU's kernels for tasks to come.

Started as ``python -m afterslip_workers.compiling PARENT_PID`` beside the first task,
which imports, and builds or reads a model, meanwhile: what it compiles lies on disk.
"""

from __future__ import annotations

import os
import sys

import structlog

from afterslip_solver.compile_ahead import compile_ahead
from afterslip_workers.process.parent import die_with_parent

# as a nice value: tasks go first
_GIVES_WAY = 5

log = structlog.get_logger()


def main() -> None:
    """Compile, and end."""
    die_with_parent(int(sys.argv[1]))
    os.nice(_GIVES_WAY)
    try:
        compile_ahead("gpu")
    except Exception:
        # what fails here fails again in the first task, whose attempt says so
        log.exception("nothing is compiled ahead of the first task")


if __name__ == "__main__":
    main()
