"""Planes of voxels from GPU to GPU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import cupy

from afterslip_solver.backend.base import BackendError

_ALREADY = 704


def devices(count: int) -> list[int]:
    """Return the first of the visible GPUs.

    Raises
    ------
    BackendError
        Fewer are visible.
    """
    try:
        visible = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(f"no CUDA device can be used: {error}") from error
    if visible < count:
        raise BackendError(f"{count} GPUs are asked for and {visible} are visible")
    return list(range(count))


def on(device: int) -> Any:
    """Return what makes a GPU the current one."""
    return cupy.cuda.Device(device)


class PeerCopies:
    """Copies of planes between the GPUs of slabs, without the host.

    A copy waits for what makes the plane, and what comes next there for the copy.
    """

    def __init__(self, devices: Sequence[int]) -> None:
        self._devices = tuple(devices)
        self._made = [_event(device) for device in devices]
        self._copied = [_event(device) for device in devices]
        for one, other in pairwise(devices):
            _reach(one, other)
            _reach(other, one)

    def __call__(self, slabs: Any, fields: Sequence[Any], copies: Any) -> None:
        """Copy planes of fields, (3, node, lane) of each slab."""
        for device, event in zip(self._devices, self._made, strict=True):
            with cupy.cuda.Device(device):
                event.record(cupy.cuda.Stream.null)
        for (to, there), (source, here) in copies:
            target, origin = fields[to], fields[source]
            each = slabs[to].area * target.shape[2] * target.itemsize
            with cupy.cuda.Device(self._devices[to]):
                stream = cupy.cuda.Stream.null
                stream.wait_event(self._made[source])
                for c in range(3):
                    cupy.cuda.runtime.memcpyPeerAsync(
                        target[c].data.ptr + there * each,
                        self._devices[to],
                        origin[c].data.ptr + here * each,
                        self._devices[source],
                        each,
                        stream.ptr,
                    )
                self._copied[to].record(stream)
        for (to, _), (source, _) in copies:
            with cupy.cuda.Device(self._devices[source]):
                cupy.cuda.Stream.null.wait_event(self._copied[to])


def _event(device: int) -> Any:
    with cupy.cuda.Device(device):
        return cupy.cuda.Event(disable_timing=True)


def _reach(one: int, other: int) -> None:
    """Let a GPU read another's memory, where that is possible."""
    runtime = cupy.cuda.runtime
    if one == other or not runtime.deviceCanAccessPeer(one, other):
        return
    with cupy.cuda.Device(one):
        try:
            runtime.deviceEnablePeerAccess(other)
        except runtime.CUDARuntimeError as error:
            if error.status != _ALREADY:
                raise
