"""HDF5 files that are not trusted, read in a process that ends in time.

A damaged file of a few kB can keep the HDF5 library in a loop that has no end, in
which it also holds the lock of Python, so that no other thread of a service would run.
Only another process can be ended.
"""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

from afterslip.errors import Problem, SpecError, one_problem

if TYPE_CHECKING:
    import xarray as xr

CPU_S = 20.0
BYTES_PER_S = 5e6  # more time for larger files
WALL = 10.0  # of a busy machine, times the processor's


def check_apart(content: bytes, label: str, most: int) -> None:
    """Refuse what `check_hdf` refuses, and what does not end.

    Raises
    ------
    SpecError
    MemoryError
    """
    _apart(content, label, most, whole=False)


def load(
    content: bytes, label: str, engine: Literal["scipy", "h5netcdf"]
) -> xr.Dataset:
    """Return the content of a NetCDF file, read in this process.

    Raises
    ------
    SpecError
    MemoryError
    """
    import xarray as xr

    try:
        with xr.open_dataset(
            io.BytesIO(content), engine=engine, decode_times=False
        ) as found:
            return found.load()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 whatever the libraries meet
        reason = type(error).__name__
        raise one_problem(label, None, f"cannot be read as NetCDF ({reason})") from None


def load_apart(content: bytes, label: str, most: int) -> xr.Dataset:
    """Return the content of a NetCDF file in the HDF5 format.

    Raises
    ------
    SpecError
        Also for what does not end.
    MemoryError
    """
    import xarray as xr

    found = _apart(content, label, most, whole=True)
    if not isinstance(found, xr.Dataset):
        raise one_problem(label, None, "cannot be read as NetCDF")
    return found


def _apart(content: bytes, label: str, most: int, whole: bool) -> xr.Dataset | None:
    seconds = CPU_S + len(content) / BYTES_PER_S
    # -P: a module of the working folder is not taken for one of ours
    command = [sys.executable, "-P", "-m", __name__]
    arguments = [label, str(most), str(int(whole)), f"{seconds:.0f}"]
    try:
        done = subprocess.run(
            command + arguments,
            input=content,
            capture_output=True,
            timeout=WALL * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _endless(label, seconds) from None
    if done.returncode in _out_of_time():
        raise _endless(label, seconds)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        end = lines[-1] if lines else f"the reader ended with {done.returncode}"
        if "MemoryError" in end:
            raise MemoryError(f"{label}: {end}")
        raise one_problem(label, None, f"cannot be read as NetCDF or HDF5 ({end})")
    found = pickle.loads(done.stdout)  # noqa: S301 what our own process has written
    if isinstance(found, list):
        raise SpecError(found)
    return found  # type: ignore[no-any-return]


def _endless(label: str, seconds: float) -> SpecError:
    message = f"is not read within {seconds:.0f} s: it is damaged, or very large"
    return one_problem(label, None, message, "save it again, as plain arrays")


def _out_of_time() -> tuple[int, ...]:
    """Return the exit statuses of a process that has used up its time."""
    if sys.platform == "win32":  # no such limit there
        return ()
    import signal

    # killed where starting it alone has taken longer, or where memory has run out
    return -signal.SIGXCPU, -signal.SIGKILL


def read_here(content: bytes, label: str, most: int, whole: bool) -> xr.Dataset | None:
    """Check a file, and load it if asked, in this process.

    Raises
    ------
    SpecError
    MemoryError
    """
    # only the process that reads the file needs the HDF5 library
    from afterslip.readers.hdf import check_hdf

    check_hdf(content, label, most)
    if not whole:
        return None
    return load(content, label, "h5netcdf")


def main() -> None:
    """Read standard input; write a dataset, nothing or problems, pickled."""
    label, most, whole, seconds = sys.argv[1:]
    if sys.platform != "win32":
        import resource

        limit = int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    content = sys.stdin.buffer.read()
    found: xr.Dataset | list[Problem] | None = None
    try:
        found = read_here(content, label, int(most), bool(int(whole)))
    except SpecError as error:
        found = list(error.problems)
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    main()
