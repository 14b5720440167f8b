"""One group over several devices, for models that do not fit one.

The elements are cut into parts; every device runs the same program on its part, and
sums over elements are completed over the nodes that parts share.
"""

from __future__ import annotations

from afterslip_common.errors import RankLostError
from afterslip_solver.parallel.distributed_model import (
    DistributedModel,
    PartGuesses,
    PartNestedGuess,
)
from afterslip_solver.parallel.gpus import gpu_rank_group, prepare_on_gpus
from afterslip_solver.parallel.partition import PartitionError, divide, split
from afterslip_solver.parallel.processes import ProcessRankGroup
from afterslip_solver.parallel.rank_group import RankGroup, ThreadRankGroup

__all__ = [
    "DistributedModel",
    "PartGuesses",
    "PartNestedGuess",
    "PartitionError",
    "ProcessRankGroup",
    "RankGroup",
    "RankLostError",
    "ThreadRankGroup",
    "divide",
    "gpu_rank_group",
    "prepare_on_gpus",
    "split",
]
