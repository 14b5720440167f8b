"""A server of buckets in this process, for tests."""

import logging
import uuid
from contextlib import contextmanager

import httpx
from moto.server import ThreadedMotoServer

SECRET = "not-for-the-log"


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record):
        self._lines.append(record.getMessage())


class Running:
    """A server that answers like S3."""

    def __init__(self):
        server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        server.start()
        self._server: ThreadedMotoServer | None = server
        _, port = server.get_host_and_port()
        self.url = f"http://127.0.0.1:{port}"
        self._lines = []
        self._handler = _Lines(self._lines)
        log = logging.getLogger("werkzeug")
        log.addHandler(self._handler)
        log.setLevel(logging.INFO)

    def bucket(self):
        """Return the address of a fresh part of a bucket."""
        httpx.put(f"{self.url}/bucket").raise_for_status()
        return f"s3://bucket/{uuid.uuid4().hex[:8]}"

    def requests(self):
        return self._lines

    def stop(self):
        if self._server is not None:
            self._server.stop()
            self._server = None
        logging.getLogger("werkzeug").removeHandler(self._handler)


@contextmanager
def server(patch):
    """Run a server and point the environment at it."""
    running = Running()
    patch.setenv("AWS_ENDPOINT_URL", running.url)
    patch.setenv("AWS_ACCESS_KEY_ID", "tester")
    patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    patch.setenv("AWS_REGION", "us-east-1")
    patch.setenv("AWS_ALLOW_HTTP", "true")
    try:
        yield running
    finally:
        running.stop()
