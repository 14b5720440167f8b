"""What verbs of several packages have in common."""

from __future__ import annotations

from enum import StrEnum

PAGE = 160  # columns of a table that goes to a file


class Backend(StrEnum):
    """Where to compute."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"
