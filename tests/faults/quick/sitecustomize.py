"""Makes a deployment quick to hurt: on the path of its processes, and of no others.

Computing processes get tasks that write what real tasks write, and stop where a test
wants them to; the clock of the service may be set while it runs.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

if "afterslip_workers.child" in sys.orig_argv:
    sys.path[:0] = [
        str(Path(__file__).parents[2] / "service"),
        str(Path(__file__).parent),
    ]
    import quick_tasks

    from afterslip_workers import tasks

    for kind in ("model", "greens", "inversion"):
        sys.modules[f"{tasks.__name__}.{kind}"] = quick_tasks
        setattr(tasks, kind, quick_tasks)

if "AFTERSLIP_FAULTS_CLOCK" in os.environ:
    from afterslip_service import clock

    _file, _now = Path(os.environ["AFTERSLIP_FAULTS_CLOCK"]), clock.now

    def _shifted():
        return _now() + timedelta(seconds=float(_file.read_text() or 0))

    clock.now = _shifted
