"""cuDSS is given what its header asks for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, csr_array

from afterslip_solver.benchmarks import direct


class _Array(np.ndarray):
    """A host array with an address, as a device's has one."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.asarray(self)


class _Library:
    """Records what it is given, and solves with the arrays behind it."""

    def __init__(self):
        self.matrices = []
        self.phases = []

    def __getattr__(self, name):
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name, arguments):
        if name.startswith("cudssMatrixCreate"):
            self.matrices.append((name, arguments[1:]))
        if name == "cudssExecute":
            self.phases.append(arguments[1])
        return 0


def test_the_upper_triangle_and_all_lanes_are_handed_over():
    recorded = []

    def asarray(values):
        recorded.append(np.ascontiguousarray(values).view(_Array))
        return recorded[-1]

    runtime = SimpleNamespace(memGetInfo=lambda: (0, 0))
    device = SimpleNamespace(synchronize=lambda: None)
    cuda = SimpleNamespace(runtime=runtime, Device=lambda: device)
    xp = SimpleNamespace(asarray=asarray, zeros_like=np.zeros_like, cuda=cuda)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((12, 12))
    dense += dense.T
    f = rng.standard_normal((4, 3, 4))
    library: Any = _Library()
    direct.cudss(library, xp, bsr_array(dense, blocksize=(3, 3)), f, 1.0)
    starts, columns, values, b = recorded
    upper = csr_array((values, columns, starts), shape=(12, 12))
    np.testing.assert_array_equal(upper.toarray(), np.triu(dense))
    assert starts.dtype == columns.dtype == np.int32
    # a right-hand side behind the other
    np.testing.assert_array_equal(b, f.reshape(12, 4).T)
    (csr, given), *sides = library.matrices
    assert csr == "cudssMatrixCreateCsr"
    assert given[:3] == (12, 12, len(values))
    # FP64 values, INT32 indices, positive definite, upper triangle, counted from zero
    assert given[-6:] == (10, 10, 1, 3, 2, 0)
    assert [side[1][:3] for side in sides] == [(12, 4, 12)] * 2
    assert library.phases == [3, 4, 1008, 1008]
