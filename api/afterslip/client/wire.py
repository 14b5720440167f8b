"""What carries requests: httpx, blocking."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import httpx


class Wire(Protocol):
    """The only part of a client that waits: each method returns when it is done."""

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return the whole answer."""

    def open(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET and return the answer before its body has come."""

    def read(self, response: httpx.Response) -> bytes:
        """Read the body of an open answer."""

    def lines(self, response: httpx.Response) -> Iterator[str]:
        """Yield the lines of an open answer as they come."""

    def end(self, response: httpx.Response) -> None:
        """Close an open answer."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def close(self) -> None:
        """Close all connections."""


class BlockingWire:
    """A wire that blocks the calling thread.

    Parameters
    ----------
    sleep : waits some seconds, for tests.
    options : of `httpx.Client`.
    """

    def __init__(
        self, sleep: Callable[[float], None] = time.sleep, **options: Any
    ) -> None:
        self._http = httpx.Client(**options)
        self.sleep = sleep

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return the whole answer."""
        return self._http.request(method, path, **options)

    def open(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET and return the answer before its body has come."""
        request = self._http.build_request("GET", path, **options)
        return self._http.send(request, stream=True)

    def read(self, response: httpx.Response) -> bytes:
        """Read the body of an open answer."""
        return response.read()

    def lines(self, response: httpx.Response) -> Iterator[str]:
        """Yield the lines of an open answer as they come."""
        return response.iter_lines()

    def end(self, response: httpx.Response) -> None:
        """Close an open answer."""
        response.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()
