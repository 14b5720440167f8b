"""What a benchmark says: a figure, beside what it must be read against."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, TypedDict

from afterslip_common import graphics


class Record(TypedDict):
    """One figure.

    ``ratio`` is value over baseline; the baseline stems from the same run, or is a
    published figure, which the note then says. Both are None where there is none.
    """

    metric: str
    value: float
    unit: str
    baseline: float | None
    ratio: float | None
    note: str


def record(
    metric: str, value: float, unit: str, baseline: float | None = None, note: str = ""
) -> Record:
    """Return a record; the ratio follows from value and baseline."""
    ratio = None if not baseline else float(value) / float(baseline)
    floor = None if baseline is None else float(baseline)
    return Record(
        metric=metric,
        value=float(value),
        unit=unit,
        baseline=floor,
        ratio=ratio,
        note=note,
    )


def document(records: list[Record], device: str) -> dict[str, Any]:
    """Return what a benchmark's JSON file holds."""
    return {"device": device, "commit": commit(), "records": records}


def write_records(
    path: Path | None, records: list[Record], commit: str | None = None
) -> None:
    """Write records of this machine as a file; none without a path.

    Parameters
    ----------
    commit : measured; default the one that is checked out here.
    """
    if path is None:
        return
    content = document(records, device_name())
    content["commit"] = commit or content["commit"]
    path.write_text(json.dumps(content, indent=1) + "\n")


def device_name() -> str:
    """Name the GPU, or else the cores, that this process may use."""
    hidden = graphics.visible() == []
    names = [] if hidden else [name for (name,) in graphics.ask("gpu", "name")]
    count = f"{len(names)} x " if len(names) > 1 else ""
    return f"{count}{names[0]}" if names else processor_name()


def processor_name() -> str:
    """Name the processor and its cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "CPU"
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return f"{_cores()} cores of {models[0]}" if models else "CPU"


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def commit() -> str:
    """Name the version of the code, where git knows it."""
    query = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    try:
        done = subprocess.run(query, capture_output=True, text=True, cwd=here)  # noqa: PLW1510
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"
