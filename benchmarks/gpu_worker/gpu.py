"""What NVIDIA's driver says of a GPU, and a program that takes its memory away.

    python benchmarks/gpu_worker/gpu.py --leave BYTES [--first BYTES --grown BYTES]

takes all of the GPU's memory but some by plain ``cudaMalloc`` and holds it until its
standard input ends. With ``--first`` it leaves so much until others have taken
``--grown`` of it, and takes what others free from then on.
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SMALLEST = 2 << 20
LARGEST = 4 << 30
TAKE_S = 60.0


class Gpu:
    """The first GPU, as NVML sees it, which needs no CUDA context."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        if first.isdigit():
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(int(first))
        else:
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(first.encode())

    @property
    def used(self) -> int:
        """Bytes that all processes hold."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).used)

    @property
    def free(self) -> int:
        """Bytes that nobody holds."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).free)

    @property
    def total(self) -> int:
        """Bytes that there are."""
        return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handle).total)

    @property
    def tells_utilization(self) -> bool:
        """Whether the driver says how busy it is."""
        try:
            self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
        except self._nvml.NVMLError:
            return False
        return True


class Peak:
    """Largest number of bytes in use while it is open."""

    def __init__(self, gpu: Gpu | None) -> None:
        self._gpu, self._stop = gpu, threading.Event()
        self.bytes = 0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while self._gpu is not None and not self._stop.wait(0.02):
            self.bytes = max(self.bytes, self._gpu.used)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Taker:
    """Another process, which takes memory; in ``with``, or let go by ``close``."""

    def __init__(self, leave: int, first: int | None = None, grown: int = 0) -> None:
        command = [sys.executable, str(Path(__file__)), "--leave", str(leave)]
        if first is not None:
            command += ["--first", str(first), "--grown", str(grown)]
        self._process: Any = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        self._hear("ready")

    def _listen(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)

    def _hear(self, word: str) -> int:
        try:
            said, count = self._lines.get(timeout=TAKE_S).split()
        except queue.Empty:
            raise AssertionError(f"no memory {word} within {TAKE_S} s") from None
        assert said == word, f"{said}, not {word}"
        return int(count)

    def taken(self) -> int:
        """Wait until memory was taken for the first time; its bytes."""
        return self._hear("taken")

    def close(self) -> None:
        """Let everything go."""
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Taker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _take(leave: int, first: int | None, grown: int, stop: threading.Event) -> None:
    from cupy.cuda import runtime

    runtime.free(runtime.malloc(SMALLEST))  # makes the context
    held = 0 if first is None else _take_but(first)
    before = runtime.memGetInfo()[0]
    print("ready", held, flush=True)
    while first is not None and not stop.is_set():
        if before - runtime.memGetInfo()[0] > grown:
            break
        time.sleep(0.002)
    held += _take_but(leave)
    print("taken", held, flush=True)
    while not stop.wait(0.01):
        if first is not None:
            _take_but(leave)


def _take_but(leave: int) -> int:
    """Take all that is free but so much; returns how many bytes that were."""
    from cupy.cuda import runtime

    held = 0
    want = min(runtime.memGetInfo()[0] - leave, LARGEST)
    while want >= SMALLEST:
        try:
            runtime.malloc(want)
        except runtime.CUDARuntimeError:
            want //= 2
        else:
            held += want
            want = min(runtime.memGetInfo()[0] - leave, LARGEST)
    return held


def main() -> None:
    """Take memory until nobody listens any more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leave", type=int, default=0)
    parser.add_argument("--first", type=int)
    parser.add_argument("--grown", type=int, default=0)
    options = parser.parse_args()
    stop = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    _take(options.leave, options.first, options.grown, stop)


if __name__ == "__main__":
    main()
