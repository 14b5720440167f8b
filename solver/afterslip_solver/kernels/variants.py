"""What the CUDA sources are compiled with."""

from __future__ import annotations

from typing import Any

import numpy as np

# elements and threads of a block of elastic.cu
BLOCK = 192
THREADS = 128
# thread blocks that a multiprocessor shall hold, which bounds their registers
RESIDENT = {"float": 7, "double": 4}


def name_of(real: Any) -> str:
    """Name a NumPy precision in C."""
    return "float" if real == np.float32 else "double"


def elastic(real: Any) -> tuple[str, ...]:
    """Return the definitions of elastic.cu for a precision."""
    name = name_of(real)
    return (f"REAL={name}", f"THREADS={THREADS}", f"RESIDENT={RESIDENT[name]}")


def sparse(real: Any) -> tuple[str, ...]:
    """Return the definitions of sparse.cu for a precision."""
    return (f"REAL={name_of(real)}",)


def vectors(y: Any, x: Any) -> tuple[str, ...]:
    """Return the definitions of vectors.cu for the precisions of two vectors."""
    return (f"Y={name_of(y)}", f"X={name_of(x)}")


def creep(state: Any) -> tuple[str, ...]:
    """Return the definitions of creep.cu for the precision of states."""
    return (f"STATE={name_of(state)}",)


def basis(x: Any) -> tuple[str, ...]:
    """Return the definitions of basis.cu for the precision of the vectors."""
    return (f"X={name_of(x)}",)
