"""Computing processes keep freed memory for their next arrays, and give it back."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from supervised import FAKE, envelope

from afterslip_workers import entry
from afterslip_workers.machine import heap
from afterslip_workers.process import memory, supervisor
from afterslip_workers.process.children import Pool

SIZE = 512 << 20

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library"
)


def grown_after_an_array(**environment: str) -> list[int]:
    """Bytes by which a process has grown after an array, and once it gave it back."""
    code = (
        "import psutil, numpy as np\n"
        "from afterslip_workers.machine import heap\n"
        "of = lambda: psutil.Process().memory_info().rss\n"
        "before = of()\n"
        f"a = np.ones({SIZE}, dtype=np.uint8)\n"
        "del a\n"
        "freed = of() - before\n"
        "heap.give_back()\n"
        "print(freed, of() - before)\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in heap.VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


def test_freed_memory_stays_until_it_is_given_back():
    freed, after = grown_after_an_array(**heap.VARIABLES)
    assert freed > 0.9 * SIZE
    assert after < 0.1 * SIZE
    # what the variables are for
    assert grown_after_an_array()[0] < 0.1 * SIZE


def test_process_without_work_gives_memory_back(monkeypatch, tmp_path):
    entry.prepare(tmp_path)
    # what Dask's nanny gives its workers
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    pool = Pool((FAKE,))
    monkeypatch.setattr(supervisor, "pool", pool)
    try:
        order = {"do": "grow", "bytes": SIZE, "seconds": 0.0}
        receipt = entry.execute(envelope(tmp_path, "a1", **order))
        # at its end, of which this process may hear late
        held, pid = receipt["stats"]["held"], pool._idle[0].pid
        assert held > SIZE
        end = time.monotonic() + 30
        while memory.resident(pid) > held - 0.5 * SIZE and time.monotonic() < end:
            time.sleep(0.1)
        assert held - memory.resident(pid) > 0.5 * SIZE
        # and it goes on
        assert entry.execute(envelope(tmp_path, "a2", do="nothing"))["outcome"] == (
            "stored"
        )
        assert pool._idle[0].pid == pid
    finally:
        pool.close()
