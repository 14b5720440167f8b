"""Compiled functions that several processes keep in one folder.

Numba lists what it keeps of a function in an index beside it, and writes the index
first. Of two processes that compile for different types at the same time, one loses its
line or gets the other's code; one that is killed between the two leaves a new line for
old code; and a change of what was inlined from another module is not noticed. Numba
checks none of this when it loads. Here the name of a file says all that its content
follows from, so that there is nothing to list.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is called; it lets go of the interpreter's lock.

    Parameters
    ----------
    options : further ones of ``numba.njit``.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        made = numba.njit(nogil=True, **options)(function)
        made._cache = _Kept(function)
        return made

    return compile_later


class _Kept(FunctionCache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # modules beside the function's own may hold what is inlined
        beside = sources(Path(function.__code__.co_filename).parent)
        self._cache_file = _Files(self.cache_path, self._impl.filename_base, beside)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Files named by the types, the processor and the sources of what they keep."""

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._file(key), data)

    def load(self, key: Any) -> Any:
        try:
            return self._load_data(self._file(key))
        except (OSError, EOFError, pickle.UnpicklingError):
            # not there, or not whole
            return None

    def _file(self, key: Any) -> str:
        cause = f"{self._version} {self._source_stamp} {key}"
        name = hashlib.sha256(cause.encode()).hexdigest()[:32]
        return f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"


@cache
def sources(folder: Path) -> str:
    """Digest of the modules of a folder and of those in it."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes())
    return found.hexdigest()
