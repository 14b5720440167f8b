"""What a computing process answers to its parent."""

from __future__ import annotations

from afterslip_workers.messages import Receipt
from afterslip_workers.messages.base import Message


class Answer(Message):
    """A receipt, and what the parent has to know of the process.

    Attributes
    ----------
    poisoned : the process is not fit for another task.
    warm_bytes : that it holds for its next task.
    """

    receipt: Receipt
    poisoned: bool = False
    warm_bytes: int = 0
