"""What a computing process does in the matrix: everything but to solve."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import tiny_worker

from afterslip.error_class import ErrorClass
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.messages import Stats
from afterslip_workers.store import manifest

HOLDS = Path(os.environ["AFTERSLIP_FAULTS_HOLDS"])
N_SOURCES = 16


def hold(point, context):
    """Stay here while a test wants it, and say who does."""
    wanted = HOLDS / point
    group = context.envelope.group
    index = group.index if group else 0
    try:
        if index < int(wanted.read_text()):
            return
    except (FileNotFoundError, ValueError):
        return
    (HOLDS / f"{point}.{os.getpid()}").touch()
    while wanted.exists():
        if context.should_stop():
            raise CancelledError
        time.sleep(0.02)


def fail():
    """Fail now and then, where a test says how often."""
    if name := os.environ.get("AFTERSLIP_FAULTS_FAIL"):
        time.sleep(random.uniform(0.0, 0.5))
        if random.random() < float(Path(name).read_text()):
            raise TaskError(ErrorClass.BAD_INPUT, "a planned failure")


def run(context):
    """Do one attempt; see ``tiny_worker``."""
    envelope = context.envelope
    kind = envelope.kind
    solves = 0 if kind == "model" else 3
    context.report({"phase": "solving", "solves_done": 0, "solves_expected": solves})
    hold(
        {"model": "model", "group": "solving", "inversion": "inverting"}[kind], context
    )
    fail()
    real = manifest.commit

    def commit(folder, made):
        hold("written", context)
        return real(folder, made)

    manifest.commit = commit if kind == "group" else real
    try:
        made = getattr(tiny_worker.TinyWorker(N_SOURCES), f"_{kind}")(envelope)
    finally:
        manifest.commit = real
    return made, Stats(solves=solves, iterations=30, residual=1e-9)


def hand_over(context, path):
    """Do all of the attempt in the process that was to solve."""
    return run(context)
