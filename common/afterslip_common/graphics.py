"""Questions to the NVIDIA driver's own tool, which needs no CUDA context.

A context of ours would take half a gigabyte of the device that is asked about.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from itertools import takewhile


def visible() -> list[str] | None:
    """Return the devices that CUDA_VISIBLE_DEVICES names; None where it is not set.

    As CUDA does, which takes none from the first on that is no device, such as -1.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return None
    names = (name.strip() for name in chosen.split(","))
    return list(takewhile(lambda name: name and not name.startswith("-"), names))


def ask(
    question: str, columns: str, ids: Sequence[str] = (), timeout_s: float = 10.0
) -> list[list[str]]:
    """Return one row of values for each device or process.

    Parameters
    ----------
    question : "gpu" or "compute-apps".
    columns : names of what is asked, as ``nvidia-smi`` calls them, with commas;
        memory comes in MiB, without its unit.
    ids : devices to ask of; empty: all.
    timeout_s : after which nobody answers, s.

    Returns
    -------
    Empty where there is no such tool, no driver, or no answer.
    """
    query = ["nvidia-smi", f"--query-{question}={columns}"]
    which = ["--id", ",".join(ids)] if ids else []
    try:
        answer = subprocess.run(
            [*query, "--format=csv,noheader,nounits", *which],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    # a name may have commas of its own; what has too few is a complaint
    more = columns.count(",")
    rows = [line.rsplit(",", more) for line in answer.splitlines() if line.strip()]
    return [[value.strip() for value in row] for row in rows if len(row) == more + 1]
