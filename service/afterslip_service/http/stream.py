"""Server-sent events: one reader of the database feeds every listener.

A listener says where it stands (``Last-Event-ID``); the hub keeps the newest
events in memory, and older ones are read from the database, so that a listener
may come back after any absence, also to a service that was started anew.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

import structlog

from afterslip_service.db import events
from afterslip_service.db.events import Event
from afterslip_service.db.session import Database, SQLAlchemyError

RECENT = 2000
PAGE = 500
POLL_S = 0.25
HEARTBEAT_S = 15.0

log = structlog.get_logger()


class Hub:
    """Reads new events once for all listeners of this process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recent: deque[Event] = deque(maxlen=RECENT)
        # everything after this number is in ``_recent``
        self._floor = 0
        self._last = 0
        self._listeners = 0
        # set once and replaced: a waiter holds no lock that its end could break
        self._news = asyncio.Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._poke = asyncio.Event()

    async def start(self) -> None:
        """Start to read."""
        self._loop = asyncio.get_running_loop()
        self._last = self._floor = await self.newest()
        self._task = asyncio.create_task(self._read_on(), name="event hub")

    def wake(self) -> None:
        """Read at once; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._poke.set)

    async def close(self) -> None:
        """End every stream, so that the server can shut down."""
        self._closed = True
        self._tell()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _read_on(self) -> None:
        while not self._closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poke.wait(), POLL_S)
            self._poke.clear()
            if self._listeners:
                await self._refill()

    async def _refill(self) -> None:
        try:
            fresh = await asyncio.to_thread(self._after, self._last, None)
        except SQLAlchemyError as error:
            log.warning("events cannot be read", error=str(error))
            return
        if not fresh:
            return
        for event in fresh:
            if len(self._recent) == RECENT:
                self._floor = self._recent[0].id
            self._recent.append(event)
        self._last = fresh[-1].id
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _newest(self) -> int:
        with self._database.read() as connection:
            return events.newest(connection)

    def _after(self, last: int, campaign: str | None) -> list[Event]:
        with self._database.read() as connection:
            return events.after(connection, last, campaign, PAGE)

    async def newest(self) -> int:
        """Return the number of the newest event, 0 if there is none."""
        return await asyncio.to_thread(self._newest)

    async def stream(
        self, last: int, campaign: str | None = None
    ) -> AsyncIterator[str]:
        """Yield the text of a stream.

        Parameters
        ----------
        last : number of the last event that the listener has. It is sent first, so
            that a listener whose line breaks before an event came misses none.
        campaign : only of this campaign; None for all.
        """
        self._listeners += 1
        try:
            yield f"retry: 2000\nid: {last}\n\n"
            while not self._closed:
                found, last = await self._next(last, campaign)
                for event in found:
                    yield text(event)
                if not found and not self._closed:
                    yield ": still here\n\n"
        finally:
            self._listeners -= 1

    async def _next(self, last: int, campaign: str | None) -> tuple[list[Event], int]:
        """Return what comes after number ``last``, and the number reached by it.

        Nothing is returned after a heartbeat's time without news.
        """
        deadline = asyncio.get_running_loop().time() + HEARTBEAT_S
        while not self._closed:
            if last < self._floor:
                found = await asyncio.to_thread(self._after, last, campaign)
                reached = found[-1].id if len(found) == PAGE else self._floor
                reached = max(reached, found[-1].id if found else 0)
            else:
                newer = [event for event in self._recent if event.id > last]
                found = [e for e in newer if campaign in (None, e.campaign)]
                reached = newer[-1].id if newer else last
            last = reached
            if found:
                return found, last
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or not await self._wait(last, left):
                return [], last
        return [], last

    async def _wait(self, last: int, seconds: float) -> bool:
        """Wait for events after number ``last``; False if none came in time."""
        if self._closed or self._last > last:
            return True
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        return True


def text(event: Event) -> str:
    """Return an event as it goes over the line."""
    data = {
        "id": event.id,
        "time": event.time.isoformat(),
        "campaign": event.campaign,
        "kind": event.kind,
        "data": event.data,
    }
    return f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(data)}\n\n"
