"""A service in a process of its own, so that its memory and log can be measured.

Run as a program: ``python lone_service.py SETTINGS`` with settings as JSON; the first
line that it writes is its port.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from afterslip_service import logs
from afterslip_service.main import create_app
from afterslip_service.server import Server
from afterslip_service.settings import Settings
from afterslip_workers import entry


class Process:
    """The service that runs, looked at from outside."""

    def __init__(self, process, log):
        self._process, self._log = process, log
        self.url = f"http://127.0.0.1:{int(process.stdout.readline())}"

    @property
    def log(self):
        return self._log.read_text()

    def memory(self, key="VmRSS"):
        """Return bytes, now (VmRSS) or at most since ``forget_peak`` (VmHWM)."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(key))
        return int(line.split()[1]) * 1024

    def forget_peak(self):
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")


@contextmanager
def running(folder, **settings):
    log = folder / "service.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(settings, default=str)],
            stdout=subprocess.PIPE,
            stderr=stream,
        )
    try:
        yield Process(process, log)
    finally:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


def main():
    logs.configure()
    entry.load_engines()  # not while the memory of a request is measured
    settings = Settings(**json.loads(sys.argv[1]))
    server = Server(create_app(settings, None), "127.0.0.1", 0)
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    server.serve_here()


if __name__ == "__main__":
    main()
