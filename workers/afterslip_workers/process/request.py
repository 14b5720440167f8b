"""What a worker asks of a computing process."""

from __future__ import annotations

from typing import Any, Literal

from afterslip_workers.messages.base import Message

# of a group: all of it in one process, or what one solves and another writes. "ahead"
# says that "solve" will follow, and has no answer.
Step = Literal["all", "ahead", "solve", "write"]


class Request(Message):
    """An envelope, and which step of its work is meant.

    Attributes
    ----------
    envelope : as JSON.
    step : all but "all" of groups alone.
    exchange : path of the memory between "solve" and "write".
    """

    envelope: dict[str, Any]
    step: Step = "all"
    exchange: str | None = None
