"""Figures of an attempt, and why it failed."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from afterslip_workers.messages.base import Message, TaskError


class Failure(Message):
    """Why something failed.

    Attributes
    ----------
    error_class : one of :class:`afterslip.error_class.ErrorClass`, or one that only
        a worker of another release knows.
    message : what happened and what to do about it, for people.
    """

    error_class: str = Field(alias="class")
    message: str

    @classmethod
    def of(cls, error: TaskError) -> Failure:
        """Return what an exception says."""
        return cls(error_class=str(error.error_class), message=error.message)


class Stats(Message):
    """Figures of an attempt; an engine adds its own, such as the residual.

    Attributes
    ----------
    solves, iterations : of the solver.
    seconds : that the attempt took in its computing process.
    solving_s : of these, before another process wrote the result, s.
    began, ended : s since 1970.
    phases : seconds by phase.
    worker : name of the worker.
    taken : sources that were stored already.
    checkpoint : key of the checkpoint from which the group could go on.
    spooled : why the result waits on the worker's disk.
    warm_bytes : that the process holds for its next task.
    memory : what the process and its device held before, and after a stop.
    memory_held : bytes that the process held when it was stopped for it.
    """

    model_config = ConfigDict(extra="allow")

    solves: int | None = None
    iterations: int | None = None
    seconds: float | None = None
    solving_s: float | None = None
    began: float | None = None
    ended: float | None = None
    phases: dict[str, float] = Field(default_factory=dict)
    worker: str | None = None
    taken: int | None = None
    checkpoint: str | None = None
    spooled: Failure | None = None
    warm_bytes: int | None = None
    memory: dict[str, Any] | None = None
    memory_held: int | None = None

    def but(self, **values: Any) -> Stats:
        """Return these with some values replaced."""
        return self.model_copy(update=values)
