"""A server of buckets that can be killed, and has its data when it comes back.

It keeps everything in memory, but writes each request down before it does it; started
again, it does them again. Until then it is not reached: connections are broken off.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from urllib.parse import urlsplit

import arena
from proxy import Proxy

READS = {"GET", "HEAD"}
# writes down one request after the other: they come from many threads
PROGRAM = """
import sys, threading
from moto.moto_api._internal.recorder.models import Recorder
from moto.server import main

record, one = Recorder._record_request, threading.Lock()

def alone(*arguments, **more):
    with one:
        record(*arguments, **more)

Recorder._record_request = alone
main(sys.argv[1:])
"""


class Objects:
    """A server that speaks S3, in a process of its own.

    Attributes
    ----------
    environment : what a client needs to reach it.
    way : the network between it and its clients.
    """

    def __init__(self, folder):
        self._folder = folder
        self._journal = folder / "requests"
        self.way = Proxy(None)
        self._sessions = []
        self.process = None
        self.environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.way.port}",
            "AWS_ACCESS_KEY_ID": "tester",
            "AWS_SECRET_ACCESS_KEY": "tester",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def start(self):
        """Start, or start again with what was there, and let clients come."""
        port = arena.free_port()
        url = f"http://127.0.0.1:{port}"
        command = ["-c", PROGRAM, "--host", "127.0.0.1", "--port", str(port)]
        journal = {"MOTO_RECORDER_FILEPATH": str(self._journal)}
        journal["MOTO_ENABLE_RECORDING"] = "true"
        self._forget_reads()
        log = self._folder / "objects.log"
        self.process = arena.start(log, sys.executable, *command, **journal)
        self._sessions.append(self.process.pid)
        recorder = f"{url}/moto-api/recorder"
        arena.until(lambda: arena.http.get(f"{recorder}/download-recording"), 60, log)
        answer = arena.http.post(
            f"{recorder}/replay-recording", content=url, timeout=120
        )
        answer.raise_for_status()
        self.way.target = port
        return self

    def _forget_reads(self):
        """Keep what changes something."""
        self._journal.write_text("".join(line for line, _ in self._changes()))

    def _changes(self):
        """Return the changes asked for; a line that has no end was not done."""
        lines = []
        if self._journal.exists():
            lines = self._journal.read_text().splitlines(keepends=True)
        found = [(line, json.loads(line)) for line in lines if line.endswith("\n")]
        return [(line, asked) for line, asked in found if asked["method"] not in READS]

    def writes(self):
        """Return how often each path was written."""
        asked = [asked for _, asked in self._changes()]
        return Counter(urlsplit(a["url"]).path for a in asked if a["method"] == "PUT")

    def kill(self):
        """Kill it, and refuse its clients until it is started again."""
        self.way.target = None
        assert self.process is not None
        self.process.kill()
        self.process.wait(20)

    def close(self):
        """Stop."""
        for leader in self._sessions:
            arena.end(leader)
        self.way.close()
