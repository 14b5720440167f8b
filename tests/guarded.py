"""A process with little memory and little time, for readers of hostile files.

A reader that takes too much is ended by the kernel, not by a test that waits: memory is
limited by RLIMIT_AS, time is the processor time of one call.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
import warnings
from multiprocessing.process import BaseProcess
from pathlib import Path

MEMORY = 3 * 2**29  # bytes beyond what the imports take
CPU_S = 5.0
# a reader that waits, e.g. for a pipe, uses no processor time
WALL_S = 120.0


class Guarded:
    """Calls functions of one module in a process of its own.

    Parameters
    ----------
    module : name; its functions take bytes and return None, or what is wrong.
    """

    def __init__(self, module: str, memory: int = MEMORY) -> None:
        self.module, self.memory = module, memory
        self._process: BaseProcess | None = None

    def __call__(self, name: str, *arguments: object) -> str | None:
        """Return what is wrong with how a function took its arguments, or None."""
        process = self._process or self._start()
        self._pipe.send((name, arguments))
        if not self._pipe.poll(WALL_S):
            self.close()
            return f"{name} hangs: no answer in {WALL_S:g} s"
        try:
            return self._pipe.recv()
        except EOFError:
            process.join(10)
            code = process.exitcode
            self.close()
            if code == -signal.SIGPROF:
                return f"{name} takes more than {CPU_S:g} s of processor time"
            return f"{name} ended its process with status {code}"

    def _start(self) -> BaseProcess:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        arguments = (far, self.module, self.memory)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _one_thread():
            process.start()
        far.close()
        self._process = process
        return process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join(10)
            self._pipe.close()
            self._process = None


@contextlib.contextmanager
def _one_thread():
    """Keep libraries from reserving memory for threads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def _serve(pipe, module, memory):
    # errors of the parsers are reported; their prints are not wanted
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    functions = importlib.import_module(module)
    warnings.simplefilter("error", RuntimeWarning)
    limit = _virtual() + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    assert threading.active_count() == 1
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        try:
            found = getattr(functions, name)(*arguments)
        except BaseException:  # noqa: BLE001 also SystemExit of a library
            found = traceback.format_exc(limit=-6)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(found)


def _virtual() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
