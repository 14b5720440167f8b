"""The processes of this worker that compute.

They are started before the worker imports what it supervises them with, so that both
import at the same time: there is little here that takes long to import.
"""

from __future__ import annotations

from afterslip_workers.process.children import Pool

pool = Pool()
# where attempts outnumber the children that solve, others write what those solved
writers = Pool()
# its child ends when it has compiled
compilers = Pool(("-m", "afterslip_workers.compiling"))
