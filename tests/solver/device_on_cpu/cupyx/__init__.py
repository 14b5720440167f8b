"""What of CuPy's extras the backend uses."""

from __future__ import annotations

import numpy as np


def empty_pinned(shape, dtype):
    return np.empty(shape, dtype)
