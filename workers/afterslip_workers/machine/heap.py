"""Memory that the C library keeps for this process's next arrays.

It gives every large array back to the system when the array goes, and takes new memory
for the next one, whose pages the system must clear. A model's set-up makes gigabytes of
arrays that live for a moment, and on a virtual machine their pages cost more than what
is computed. So computing processes keep freed memory, until somebody counts what is
free, or nothing is left to do.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

# of the GNU C library, see mallopt(3): larger arrays come from the system, and so much
# may lie unused at the heap's end; other libraries do not know them. A Dask worker has
# 64 KiB for the second, from its nanny.
VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 33),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 34),
}


def give_back() -> None:
    """Return the memory that no array uses to the system."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
