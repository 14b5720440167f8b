"""Compiled functions that several processes cache in one folder.

Numba lists what it stores of a function in an index beside it, and writes the index
first. Of two processes that compile for different types at the same time, one loses its
line or gets the other's code; one that is killed between the two leaves a new line for
old code; and a change of what was inlined from another module is not noticed. Numba
checks none of this when it loads. Here the name of a file says all that its content
follows from, so that there is nothing to list.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

import afterslip_common
from afterslip_solver.ownership import folder_is_ours, ours

# where constants that kernels inline may stand, besides their own package
_COMMON = Path(afterslip_common.__file__).parents[1]


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when it is called; it lets go of the interpreter's lock.

    Parameters
    ----------
    options : further ones of ``numba.njit``.
    """

    def compile_later(function: Callable[..., Any]) -> Any:
        # nothing calls them as functions of C, whose wrappers take time to compile
        made = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
        made._cache = _Cache(function)  # noqa: SLF001
        return made

    return compile_later


def cached_file(function: Any, signature: tuple[Any, ...]) -> Path:
    """Return the file of a compiled function, which is there once it was compiled.

    Parameters
    ----------
    function : made by `compiled`. signature : Numba's types of its arguments.
    """
    cache: _Cache = function._cache  # noqa: SLF001
    return cache.file(signature, function.targetctx.codegen())


class _Cache(FunctionCache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        cause = sources(Path(function.__code__.co_filename))
        self._cache_file = _Files(self.cache_path, self._impl.filename_base, cause)

    def file(self, signature: tuple[Any, ...], codegen: Any) -> Path:
        return self._cache_file.path(self._index_key(signature, codegen))


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Files named by the types, the processor and the sources of their content."""

    def path(self, key: Any) -> Path:
        return Path(self._data_path(self._file(key)))

    def save(self, key: Any, data: Any) -> None:
        self._save_data(self._file(key), data)
        # some accounts make all their files writable for their group
        path = self.path(key)
        path.chmod(path.stat().st_mode & 0o755)

    def load(self, key: Any) -> Any:
        try:
            return self._load_data(self._file(key))
        except (OSError, EOFError, pickle.UnpicklingError):
            # not there, or not whole
            return None

    def _load_data(self, name: str) -> Any:
        """Load what only we can have written: it is code.

        Raises
        ------
        PermissionError
            If another account may have put it there.
        """
        path = Path(self._data_path(name))
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            if not (ours(found) and folder_is_ours(path.parent)):
                raise PermissionError(f"another account may write to {path}")
            return pickle.load(stream)  # noqa: S301 - nobody else can have written it

    def _file(self, key: Any) -> str:
        cause = f"{self._version} {self._source_stamp} {key}"
        name = hashlib.sha256(cause.encode()).hexdigest()[:32]
        return f"{self._index_name.removesuffix('.nbi')}.{name}.nbc"


@cache
def sources(module: Path) -> str:
    """Digest of a module and of all of ours that it imports, directly or not.

    Code and constants of imported modules may be inlined. Those of other
    distributions are not followed, also where they are installed beside us: Numba's
    own version is part of its keys.
    """
    root = next(p for p in module.parents if not (p / "__init__.py").exists())
    own = module.relative_to(root).parts[0]
    left, read = [module], dict[Path, bytes]()
    while left:
        path = left.pop()
        if path not in read:
            read[path] = path.read_bytes()
            for name in _imports(read[path]):
                top = name.partition(".")[0]
                if top == afterslip_common.__name__:
                    left += _files(_COMMON, name)
                elif module.parent == root or top == own:
                    left += _files(root, name)
    found = hashlib.sha256()
    for path in sorted(read):
        found.update(os.path.relpath(path, root).encode())
        found.update(read[path])
    return found.hexdigest()


def _files(root: Path, name: str) -> Iterator[Path]:
    """Files below a folder that an imported name stands for."""
    place = root.joinpath(*name.split("."))
    files = place.with_name(f"{place.name}.py"), place / "__init__.py"
    return (path for path in files if path.is_file())


@cache  # every module's imports end at the same few
def _imports(code: bytes) -> tuple[str, ...]:
    """Names that a module's import statements may stand for."""
    names = list[str]()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
    return tuple(names)
