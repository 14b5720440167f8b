"""The real child program with tasks that misbehave on demand."""

import ctypes
import os
import signal
import sys
import time
from functools import partial

import numpy as np
import psutil

from afterslip_common.errors import MeshError
from afterslip_workers import child
from afterslip_workers.errors import CancelledError, TaskError
from afterslip_workers.machine import exchange
from afterslip_workers.messages import GroupManifest, Stats, read_envelope
from afterslip_workers.store import manifest as manifests
from afterslip_workers.store import spool
from afterslip_workers.tasks.results import write_result


class CUDARuntimeError(RuntimeError):
    """As CuPy raises it: the number stands beside the text."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _sleep(context, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if context.should_stop():
            raise CancelledError
        time.sleep(0.02)


def _hold_everything(seconds):
    """Neither Python's signal handlers nor its threads run during this."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def _manifest(context, files, **stats):
    work = context.envelope
    return GroupManifest(
        token=work.token,
        kind="greens",
        campaign=work.campaign,
        group=work.group,
        files=files,
        stats=Stats(solves=3, **stats),
    )


def _writer(context):
    def write(folder):
        part = folder / "group.zarr"
        (part / "x" / "c").mkdir(parents=True)
        (part / "x" / "c" / "0").write_bytes(b"numbers")
        made = _manifest(context, files=manifests.seal(part))
        manifests.commit(folder, made)
        return made

    return write


_HELD = []


def _act(context, order):  # noqa: C901 - a list of misdeeds
    match order["do"]:
        case "sleep":
            _sleep(context, order["seconds"])
        case "hang":
            _hold_everything(order["seconds"])
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)
        case "cuda":
            raise CUDARuntimeError(order["status"], order["text"])
        case "memory":
            raise MemoryError("Unable to allocate 9 TiB")
        case "mesh":
            raise MeshError("fault main: too small")
        case "task":
            raise TaskError(order["class"], "as asked")
        case "zero":
            _sleep(context, 1 / 0)
        case "fill":
            (context.folder / "big").write_bytes(bytes(1 << 24))
        case "write":
            end = time.monotonic() + order["seconds"]
            while context.store_backend.reachable() and time.monotonic() < end:
                time.sleep(0.02)
            write = _writer(context)
            written, refused = write_result(context.envelope, "group.zarr", write)
            return written, Stats() if refused is None else Stats(spooled=refused)
        case "grow":
            held = bytearray(int(order["bytes"]))
            held[::4096] = b"x" * len(held[::4096])
            context.report({"phase": "grown"})
            _HELD.append(held)
            _sleep(context, order["seconds"])
            _HELD.clear()
    return None


def _written(context, path):
    """Write slowly what another process has solved, or die of it."""
    facts, arrays = exchange.load(path)
    order = context.envelope.spec
    if order.get("writing") == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    context.lap("writing")
    end = time.monotonic() + 20
    while order.get("until") and time.monotonic() < end:
        if (context.folder / order["until"]).exists():
            break
        time.sleep(0.02)
    (context.folder / "group.zarr").mkdir(exist_ok=True)
    bits = arrays["response"].tobytes().hex()
    manifest = _manifest(context, {}, pid=os.getpid(), bits=bits, solver=facts["pid"])
    return manifest, manifest.stats


def _run(context, request):
    if request.step == "write":
        return _written(context, request.exchange)
    order = context.envelope.spec
    context.report({"phase": "solving", "solves_done": 1, "solves_expected": 3})
    sys.stdout.write("line from the task\n")
    sys.stdout.flush()
    os.write(1, b"line from compiled code\n")
    done = _act(context, order)
    if done is not None:
        return done
    if request.step == "solve":
        response = np.array([1.5, np.nan, -0.0], dtype=np.float32)
        sending = exchange.Sending(request.exchange)
        sending.save({"pid": os.getpid()}, {"response": response})
        return None
    (context.folder / "group.zarr").mkdir(exist_ok=True)
    held = psutil.Process().memory_info().rss
    manifest = _manifest(context, {}, pid=os.getpid(), held=held)
    if order["do"] == "commit_and_die":
        manifests.commit(context.folder, manifest)
        os.kill(os.getpid(), signal.SIGKILL)
    return manifest, manifest.stats


def _announced(content, warm, job):
    """Leave a sign of every announcement."""
    with (spool.folder_of(read_envelope(content)) / "announced").open("a") as stream:
        stream.write(f"{os.getpid()}\n")


if __name__ == "__main__":
    child._solved = _announced
    child._task = lambda kind, request: partial(_run, request=request)
    assert len(sys.argv) == 2
    child.main()
