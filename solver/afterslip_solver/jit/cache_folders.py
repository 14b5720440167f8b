"""Where compiled kernels are cached.

Numba stores them beside the sources and CuPy in the user's home. An installation for a
service may write to neither: Numba then refuses to start, and CuPy to compile.
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from afterslip_solver.ownership import folder_is_ours

_NAME = "afterslip"


def keep() -> None:
    """Choose folders that can be written to, unless NUMBA_CACHE_DIR and the like do."""
    home = Path.home() if os.environ.get("HOME") else Path("/nonexistent")
    if "NUMBA_CACHE_DIR" not in os.environ and not _writable(Path(__file__).parent):
        folder = str(_folder(home) / "numba")
        os.environ["NUMBA_CACHE_DIR"] = folder
        # it may have read its settings before
        if "numba" in sys.modules:
            sys.modules["numba"].config.CACHE_DIR = folder
    if "CUPY_CACHE_DIR" not in os.environ and not _usable(home / ".cupy"):
        os.environ["CUPY_CACHE_DIR"] = str(_folder(home) / "cupy")


def _folder(home: Path) -> Path:
    """Return the user's cache, or else a folder that nobody else can write to.

    What is cached is code, so a folder that others may have made is not taken.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / _NAME
    if _usable(cache):
        with suppress(FileExistsError):
            cache.mkdir(mode=0o700, parents=True)
        return cache
    temporary = Path(tempfile.gettempdir()) / f"{_NAME}-{os.getuid()}"
    try:
        temporary.mkdir(mode=0o700, exist_ok=True)
        found = temporary.lstat()
        own = found.st_uid == os.getuid() and found.st_mode & 0o777 == 0o700
    except OSError:
        own = False
    return temporary if own else Path(tempfile.mkdtemp(prefix=f"{_NAME}-"))


def _usable(folder: Path) -> bool:
    """Whether files can be made in a folder, and by no other account."""
    return folder_is_ours(folder) and _writable(folder)


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which need not be there yet."""
    # unlike Path.exists, this bears folders that may not even be looked into
    exists = os.path.exists
    there = next(path for path in (folder, *folder.parents) if exists(path))
    try:
        with tempfile.TemporaryFile(dir=there):
            return True
    except OSError:
        return False
