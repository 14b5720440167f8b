"""Factorisations of the assembled matrix: SuperLU on the CPU, cuDSS on a GPU.

cuDSS is no dependency: it is measured where ``libcudss.so.1`` can be loaded.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, triu
from scipy.sparse.linalg import splu

from afterslip_common.record import Record, record
from afterslip_solver.model import Float

# of cudss.h 1.0 and library_types.h
_ANALYSIS, _FACTORISATION, _SOLVE = 3, 4, 0x3F0
_DOUBLE, _INT32, _SPD, _UPPER, _ZERO, _COLUMNS, _FILL = 1, 10, 3, 2, 0, 0, 1


def superlu(a: bsr_array, f: Float, ours: float) -> Record:
    """Factorise with SuperLU, and solve four lanes.

    Parameters
    ----------
    a : the assembled matrix. f : (n_node, 3, lane). ours : s, to set it against.
    """
    csc = a.tocsc()
    begin = time.perf_counter()
    factor = splu(csc, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    setup = time.perf_counter() - begin
    begin = time.perf_counter()
    factor.solve(f.reshape(-1, f.shape[2]))
    return record(
        "direct_solve_s",
        time.perf_counter() - begin,
        "s",
        ours,
        f"{a.shape[0]} unknowns, four lanes, factorisation {setup:.1f} s with "
        f"{factor.nnz} entries, one core; baseline: group_solve_s",
    )


def cudss_library() -> ctypes.CDLL | None:
    """Load cuDSS 1, if it is there."""
    try:
        library = ctypes.CDLL("libcudss.so.1")
    except OSError:
        return None
    pointer: Any = ctypes.c_void_p
    size: Any = ctypes.c_int64
    number: Any = ctypes.c_int
    library.cudssMatrixCreateCsr.argtypes = (
        [pointer] + 3 * [size] + 4 * [pointer] + 6 * [number]
    )
    library.cudssMatrixCreateDn.argtypes = (
        [pointer] + 3 * [size] + [pointer] + 2 * [number]
    )
    library.cudssExecute.argtypes = [pointer, number, *5 * [pointer]]
    rest = [number, pointer, ctypes.c_size_t, pointer]
    library.cudssDataGet.argtypes = [*2 * [pointer], *rest]
    library.cudssDataCreate.argtypes = 2 * [pointer]
    library.cudssDataDestroy.argtypes = 2 * [pointer]
    for name in ("MatrixDestroy", "ConfigDestroy", "Destroy"):
        getattr(library, f"cudss{name}").argtypes = [pointer]
    return library


def cudss(
    library: ctypes.CDLL, xp: Any, a: bsr_array, f: Float, ours: float
) -> list[Record]:
    """Factorise with cuDSS, a Cholesky factorisation in FP64, and solve four lanes.

    Parameters
    ----------
    library : see `cudss_library`. xp : CuPy. Others as for `superlu`.

    Raises
    ------
    ArithmeticError
        If a call fails; the message has its status.
    """
    solver = _Cudss(library, xp, a, f)
    try:
        free = xp.cuda.runtime.memGetInfo()[0]
        analysis = solver.run(_ANALYSIS)
        factorisation = solver.run(_FACTORISATION)
        taken = free - xp.cuda.runtime.memGetInfo()[0]
        solver.run(_SOLVE)
        seconds = solver.run(_SOLVE)
        fill, x = solver.fill(), solver.solution()
    finally:
        solver.close()
    b = f.reshape(-1, f.shape[2])
    off = np.linalg.norm(a @ x - b, axis=0) / np.linalg.norm(b, axis=0)
    size = f"{a.shape[0]} unknowns, four lanes, same device"
    note = f"{size}, residual {off.max():.1e}; baseline: group_solve_s"
    setup = f"{size}: analysis {analysis:.2f} s, factorisation {factorisation:.2f} s"
    return [
        record("cudss_solve_s", seconds, "s", ours, note),
        record("cudss_setup_s", analysis + factorisation, "s", None, setup),
        record("cudss_memory_gb", taken / 1e9, "GB", None, f"{size}, {fill} entries"),
    ]


class _Cudss:
    """One matrix and its right-hand sides in cuDSS."""

    def __init__(self, library: ctypes.CDLL, xp: Any, a: bsr_array, f: Float) -> None:
        self._library, self._xp = library, xp
        upper = triu(a.tocsr(), format="csr")
        upper.sort_indices()
        n, lanes = a.shape[0], f.shape[2]
        arrays = (upper.indptr.astype(np.int32), upper.indices.astype(np.int32))
        self._arrays = [xp.asarray(values) for values in (*arrays, upper.data)]
        self._b = xp.asarray(np.ascontiguousarray(f.reshape(n, lanes).T))
        self._x = xp.zeros_like(self._b)
        handles = [ctypes.c_void_p() for _ in range(6)]
        self._handle, self._config, self._data, self._a, x, b = handles
        self._sides = x, b
        self._call("Create", ctypes.byref(self._handle))
        self._call("ConfigCreate", ctypes.byref(self._config))
        self._call("DataCreate", self._handle, ctypes.byref(self._data))
        starts, columns, values = (array.data.ptr for array in self._arrays)
        self._call(
            "MatrixCreateCsr", ctypes.byref(self._a), n, n, upper.nnz,
            starts, None, columns, values,
            _INT32, _INT32, _DOUBLE, _SPD, _UPPER, _ZERO,
        )  # fmt: skip
        for side, array in ((x, self._x), (b, self._b)):
            where, layout = array.data.ptr, (_DOUBLE, _COLUMNS)
            call = ("MatrixCreateDn", ctypes.byref(side), n, lanes, n, where)
            self._call(*call, *layout)

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, f"cudss{name}")(*arguments)
        if status != 0:
            message = f"cudss{name} ended with status {status}"
            raise ArithmeticError(message)

    def run(self, phase: int) -> float:
        """Do a phase; returns the seconds that it took."""
        device = self._xp.cuda.Device()
        device.synchronize()
        begin = time.perf_counter()
        parts = (self._config, self._data, self._a, *self._sides)
        self._call("Execute", self._handle, phase, *parts)
        device.synchronize()
        return time.perf_counter() - begin

    def fill(self) -> int:
        """Entries of the factor."""
        count, written = ctypes.c_int64(), ctypes.c_size_t()
        ends = (ctypes.byref(count), 8, ctypes.byref(written))
        self._call("DataGet", self._handle, self._data, _FILL, *ends)
        return count.value

    def solution(self) -> Float:
        """(n, lane) on the host."""
        return np.asarray(self._x.get().T)

    def close(self) -> None:
        """Give everything back."""
        for matrix in (self._a, *self._sides):
            self._call("MatrixDestroy", matrix)
        self._call("DataDestroy", self._handle, self._data)
        self._call("ConfigDestroy", self._config)
        self._call("Destroy", self._handle)
