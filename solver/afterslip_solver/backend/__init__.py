"""Where arrays live and which kernels work on them: the one seam between devices.

Algorithms are written against ``backend.xp`` and the methods of `Backend`; no
other module asks which device it is on.
"""

from __future__ import annotations

from afterslip_solver.backend.base import LANES, BackendError, Blocks
from afterslip_solver.backend.protocols import Backend, Capabilities
from afterslip_solver.backend.select import available, compile_kernels, get

__all__ = [
    "LANES",
    "Backend",
    "BackendError",
    "Blocks",
    "Capabilities",
    "available",
    "compile_kernels",
    "get",
]
