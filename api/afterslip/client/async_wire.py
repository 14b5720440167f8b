"""What carries requests on an event loop, for calls that run in threads beside it.

A call builds its requests and reads their answers in a thread, so that files and
arrays never hold up the loop; every request and every pause is made on the loop, by
httpx.AsyncClient. A cancelled call ends at its next request or pause.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import httpx

R = TypeVar("R")

MOST_CALLS = 1000
"""Calls at the same moment, a thread each; more wait for one that ends."""


class _Call:
    """One call in a thread, and what the loop does for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stop = threading.Event()
        self._pending: Future[Any] | None = None

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        """Have the loop do something, and block this thread until it is done."""
        if self._stop.is_set():
            work.close()
            raise CancelledError
        pending = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._pending = pending
        if self._stop.is_set():  # since the look before
            pending.cancel()
        return pending.result()

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the loop do what must be done after a cancel, too."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        """End what the loop does for it, and begin nothing new."""
        self._stop.set()
        if self._pending is not None:
            self._pending.cancel()


_CALL: ContextVar[_Call] = ContextVar("call")


class AsyncWire:
    """A wire whose waiting is done on the event loop.

    Parameters
    ----------
    options : of `httpx.AsyncClient`.
    """

    def __init__(self, **options: Any) -> None:
        self._http = httpx.AsyncClient(**options)
        self._threads = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="afterslip")

    async def run(self, function: Callable[[], R]) -> R:
        """Run a function that waits on this wire; returns when its thread is free."""
        loop = asyncio.get_running_loop()
        call, context = _Call(loop), copy_context()
        context.run(_CALL.set, call)
        task = loop.run_in_executor(self._threads, context.run, function)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            call.stop()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # nobody else will ask for it
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()
        self._threads.shutdown(wait=False)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and return the whole answer."""
        return _CALL.get().wait(self._http.request(method, path, **options))

    def open(self, path: str, **options: Any) -> httpx.Response:
        """Send a GET and return the answer before its body has come."""
        request = self._http.build_request("GET", path, **options)
        return _CALL.get().wait(self._http.send(request, stream=True))

    def read(self, response: httpx.Response) -> bytes:
        """Read the body of an open answer."""
        return _CALL.get().wait(response.aread())

    def lines(self, response: httpx.Response) -> Iterator[str]:
        """Yield the lines of an open answer as they come."""
        lines = response.aiter_lines()

        async def following() -> str | None:
            return await anext(lines, None)

        while (line := _CALL.get().wait(following())) is not None:
            yield line

    def end(self, response: httpx.Response) -> None:
        """Close an open answer."""
        _CALL.get().finish(response.aclose())

    def sleep(self, seconds: float) -> None:
        """Wait."""
        _CALL.get().wait(asyncio.sleep(seconds))

    def close(self) -> None:
        """Close all connections."""
        _CALL.get().finish(self._http.aclose())
