"""Lets a solving process break its own CUDA context when a file asks for it.

Python runs this at its start where the folder is on PYTHONPATH, so that the product
knows nothing of it. Of all processes only the solving ones take part.
"""

import os
import sys
import threading
import time
from pathlib import Path

FOLDER_ENV = "GPU_WORKER_HARM"
# writes to an address that nobody owns: CUDA's error 700, which the context keeps
CODE = 'extern "C" __global__ void stray() { *(volatile int*)16 = 1; }'


def _break_context() -> None:
    """Do it from another thread: the context is the process', not the thread's."""
    import cupy

    cupy.RawKernel(CODE, "stray")((1,), (1,), ())
    cupy.cuda.runtime.deviceSynchronize()


def _watch(folder: Path) -> None:
    asked = folder / str(os.getpid())
    while not asked.exists():
        time.sleep(0.05)
    asked.unlink()
    _break_context()


if os.environ.get(FOLDER_ENV) and "afterslip_workers.child" in sys.orig_argv:
    threading.Thread(
        target=_watch, args=(Path(os.environ[FOLDER_ENV]),), daemon=True
    ).start()
