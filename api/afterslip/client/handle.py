"""What a campaign and an inversion on a server have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, ClassVar, Protocol, Self

from afterslip.client.transport import Transport

POLL_S = (0.2, 2.0)
# of the time that was waited, until the next question
POLL_SHARE = 0.05


class Handle:
    """Something on a server that has an identifier, a name and a state.

    Attributes
    ----------
    data : the thing as the server last described it.
    """

    _KIND: ClassVar[str]
    _FOLDER: ClassVar[str]

    def __init__(self, transport: Transport, data: dict[str, Any]) -> None:
        self._transport = transport
        self.data = data

    def __repr__(self) -> str:
        return f"<{self._KIND} {self.name!r} {self.id} {self.state}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is at hand, nothing is fetched."""
        left = "style='text-align:left'"
        rows = "".join(
            f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(value)}</td></tr>"
            for name, value in self._facts()
        )
        head = escape(f"{self._KIND} {self.name}")
        return f"<table><caption>{head}</caption>{rows}</table>"

    def _facts(self) -> list[tuple[str, str]]:
        """Return names and values, in words."""
        facts = [("id", self.id), ("state", self.state)]
        if error := self.data.get("error"):
            facts.append(("error", f"{error.get('class')}: {error.get('message')}"))
        return facts

    @property
    def id(self) -> str:
        """Identifier."""
        return str(self.data["id"])

    @property
    def name(self) -> str:
        """Name given by the user."""
        return str(self.data.get("name", ""))

    @property
    def state(self) -> str:
        """State in the server's words."""
        return str(self.data["state"])

    @property
    def _path(self) -> str:
        return f"{self._FOLDER}/{self.id}"

    def refresh(self) -> Self:
        """Ask the server again; returns itself."""
        self.data = self._transport.get(self._path)
        return self

    def _poll(self, done: Callable[[], bool], deadline: float | None) -> None:
        """Ask again and again, ever more seldom, until ``done()`` is true.

        What ends is noticed within a twentieth of the time that it took.

        Raises
        ------
        TimeoutError
        """
        begin = time.monotonic()
        while not done():
            pause = pause_after(time.monotonic() - begin)
            if deadline is not None and time.monotonic() + pause > deadline:
                what = f"{self._KIND.lower()} {self.name}"
                raise TimeoutError(f"{what} has not ended in time")
            self._transport.wire.sleep(pause)


def pause_after(waited: float) -> float:
    """Return s until the next question, after s of waiting."""
    shortest, longest = POLL_S
    return min(max(shortest, POLL_SHARE * waited), longest)


class InversionProtocol(Protocol):
    """What copying an inversion needs of it."""

    @property
    def id(self) -> str:
        """Identifier."""

    @property
    def name(self) -> str:
        """Name given by the user."""

    @property
    def state(self) -> str:
        """State in the server's words."""

    def result_bytes(self) -> bytes:
        """Return the content of ``result.nc``."""


class CampaignProtocol(Protocol):
    """What copying and sampling a campaign need of it."""

    data: dict[str, Any]

    @property
    def id(self) -> str:
        """Identifier."""

    @property
    def spec(self) -> dict[str, Any]:
        """The spec in its canonical form."""

    def refresh(self) -> Self:
        """Ask the server again."""

    def inversions(self) -> Sequence[InversionProtocol]:
        """Return its inversions."""
