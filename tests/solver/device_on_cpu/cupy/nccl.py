"""NCCL between processes, whose devices are themselves."""

from __future__ import annotations

import ctypes
import tempfile
import time
from multiprocessing.connection import Client, Listener
from pathlib import Path

import numpy as np

from cupy import cuda

available = True
NCCL_FLOAT32, NCCL_FLOAT64 = np.float32, np.float64
NCCL_SUM, NCCL_MAX = range(2)
_group = []


def get_unique_id():
    return tempfile.mkdtemp(prefix="nccl-")


def groupStart():  # noqa: N802 - NCCL's name
    _group.clear()


def groupEnd():  # noqa: N802
    calls = sorted(_group, key=lambda call: call[1])
    _group.clear()

    def run():
        for connection, peer, out, into in calls:
            into[:] = connection.swapped(peer, out)

    run()
    cuda.record(run)


def _at(address, count, kind):
    memory = (ctypes.c_char * (count * kind().itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=kind)


class NcclCommunicator:
    """One rank's end; every rank swaps with the others in the order of the pairs."""

    def __init__(self, size, unique, rank):
        self.rank, folder = rank, Path(unique)
        listener = Listener(str(folder / str(rank)), backlog=size)
        self._to = {peer: _client(folder / str(peer)) for peer in range(rank)}
        for one in self._to.values():
            one.send(rank)
        for _ in range(rank + 1, size):
            one = listener.accept()
            self._to[one.recv()] = one
        self._peers = [peer for peer in range(size) if peer != rank]

    def swapped(self, peer, values):
        """Send values to a peer, and return as many of its own."""
        to = self._to[peer]
        if self.rank < peer:
            to.send_bytes(values.tobytes())
        found = np.frombuffer(to.recv_bytes(), dtype=values.dtype)
        if self.rank > peer:
            to.send_bytes(values.tobytes())
        return found

    def allReduce(self, source, target, count, kind, how, stream):  # noqa: N802
        del stream
        values, out = _at(source, count, kind), _at(target, count, kind)

        def run():
            all_of = {self.rank: values.copy()}
            all_of |= {peer: self.swapped(peer, values) for peer in self._peers}
            table = np.array([all_of[rank] for rank in sorted(all_of)])
            out[:] = table.sum(axis=0) if how == NCCL_SUM else table.max(axis=0)

        run()
        cuda.record(run)

    def send(self, address, count, kind, peer, stream):
        del stream
        self._out = _at(address, count, kind)

    def recv(self, address, count, kind, peer, stream):
        del stream
        _group.append((self, peer, self._out, _at(address, count, kind)))


def _client(path):
    for _ in range(600):
        if path.exists():
            return Client(str(path))
        time.sleep(0.1)
    raise TimeoutError(path)
