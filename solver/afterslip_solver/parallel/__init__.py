"""One group over several devices, for models that do not fit one.

The elements are cut into parts; every device runs the same program on its part, and
sums over elements are completed over the nodes that parts share.
"""

from __future__ import annotations

from afterslip_solver.parallel.distributed_model import Distributed
from afterslip_solver.parallel.gpus import gpu_team, prepare_on_gpus
from afterslip_solver.parallel.partition import PartitionError, divide, split
from afterslip_solver.parallel.processes import ProcessTeam, RankLostError
from afterslip_solver.parallel.team import Team, ThreadTeam

__all__ = [
    "Distributed",
    "PartitionError",
    "ProcessTeam",
    "RankLostError",
    "Team",
    "ThreadTeam",
    "divide",
    "gpu_team",
    "prepare_on_gpus",
    "split",
]
