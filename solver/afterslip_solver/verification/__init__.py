"""The verification suite: measured errors against references, by name."""

from afterslip_solver.verification.check import Check, Size
from afterslip_solver.verification.suite import names, parts, run, run_all

__all__ = ["Check", "Size", "names", "parts", "run", "run_all"]
