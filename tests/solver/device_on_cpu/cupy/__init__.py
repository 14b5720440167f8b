"""What of CuPy the CUDA backend uses, with NumPy's arrays and compiled kernels.

For tests where there is no GPU: everything happens at once and in order, so nothing is
shown of streams. An array of NumPy is none of the device's, as with CuPy, and graphs
record what is launched and repeat it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from cupy import cuda
from cupy.module import RawModule

__all__ = ["RawModule", "cuda", "ndarray"]


class ndarray(np.ndarray):  # noqa: N801 - CuPy's name
    """An array of the device."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self, stream=None, out=None, blocking=True):
        del stream, blocking
        if out is None:
            return np.array(self)
        out[...] = np.asarray(self)
        return out

    def set(self, values, stream=None):
        del stream
        self[...] = asarray(values)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        for one in (*inputs, *(out or ())):
            _refuse_hosts(one)
        plain = [_plain(one) for one in inputs]
        if out is not None:
            options["out"] = tuple(_plain(one) for one in out)
        found = getattr(ufunc, method)(*plain, **options)
        if out is None and cuda.recording() is not None:
            options["out"] = (found,)
        if out is not None or isinstance(found, np.ndarray):
            cuda.record(lambda: getattr(ufunc, method)(*plain, **options))
        return out[0] if out is not None else _ours(found)

    def __setitem__(self, key, value):
        _refuse_hosts(value)
        to, key, value = _plain(self), _plain(key), _plain(value)

        def put():
            to[key] = value

        put()
        cuda.record(put)

    def __getitem__(self, key):
        if isinstance(key, tuple):
            key = tuple(_plain(one) for one in key)
        return _ours(_plain(self)[_plain(key)])

    def fill(self, value):
        self[...] = value


def _refuse_hosts(a):
    if isinstance(a, np.ndarray) and not isinstance(a, ndarray) and a.ndim:
        raise TypeError("an array of the host among those of the device")


def _plain(a):
    return a.view(np.ndarray) if isinstance(a, ndarray) else a


def _ours(a):
    return a.view(ndarray) if isinstance(a, np.ndarray) else a


def asarray(a, dtype=None):
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    return _ours(np.array(a, dtype=dtype))


def ascontiguousarray(a, dtype=None):
    return _ours(np.ascontiguousarray(_plain(a), dtype))


def asnumpy(a):
    return np.array(_plain(a))


def empty(shape, dtype=np.float64):
    """Return memory with numbers that nobody should use."""
    found = np.empty(shape, dtype)
    found.fill(np.nan if found.dtype.kind == "f" else 113)
    return _ours(found)


def empty_like(a, dtype=None):
    return empty(a.shape, a.dtype if dtype is None else dtype)


def get_default_memory_pool():
    return SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0)


def __getattr__(name):
    """Everything else is NumPy's."""
    found = getattr(np, name)
    if isinstance(found, type) or not callable(found):
        return found

    def ours(*arguments, **options):
        plain = [
            type(one)(map(_plain, one))
            if isinstance(one, list | tuple)
            else _plain(one)
            for one in arguments
        ]
        result = found(*plain, **{name: _plain(one) for name, one in options.items()})
        if isinstance(result, tuple):
            return tuple(map(_ours, result))
        return _ours(result) if isinstance(result, np.ndarray) else result

    return ours
