"""What the CUDA sources are compiled with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from afterslip_solver.backend.cuda.macro_tasks import Tasks, make_tasks
from afterslip_solver.backend.cuda.stencils import DESCENDANTS

# what becomes of a product of elastic.cu
PRODUCT, RESIDUAL, RELAX, RELAX_SUMMED = range(4)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes that elastic.cu is compiled for.

    Attributes
    ----------
    lanes : right-hand sides. block : elements of a block. threads : of a thread block.
    together : tasks behind each other that share no node.
    single, double : thread blocks that a multiprocessor shall hold in FP32 and FP64,
        which bounds their registers.
    """

    lanes: int
    block: int
    threads: int
    together: int
    single: int
    double: int

    @property
    def per_task(self) -> int:
        """Elements that share a warp."""
        return 32 // self.lanes

    def resident(self, real: Any) -> int:
        """Thread blocks of a multiprocessor."""
        return self.single if np.dtype(real) == np.float32 else self.double


# the best of those measured (benchmarks) by their number of lanes
SHAPES = {
    4: Shape(4, 192, 128, 1, 7, 4),
    8: Shape(8, 96, 128, 1, 7, 4),
    16: Shape(16, 48, 128, 1, 6, 4),
}
SHAPE = SHAPES[4]
# of blocks that are macro elements: in two tasks each can be full
MACRO_SHAPE = Shape(4, DESCENDANTS, 256, 2, 3, 2)
# places of their nodes, some of them empty
MACRO_SLOTS = 976


def name_of(real: Any) -> str:
    """Name a NumPy precision in C."""
    return "float" if np.dtype(real) == np.float32 else "double"


def elastic(
    real: Any,
    vector: Any = None,
    finish: int = PRODUCT,
    repeatable: bool = False,
    shape: Shape = SHAPE,
    packed: bool = False,
) -> tuple[str, ...]:
    """Return the definitions of elastic.cu.

    Parameters
    ----------
    real : precision of the arithmetic. vector : of the vector, default the same.
    finish : PRODUCT, RESIDUAL, RELAX or RELAX_SUMMED.
    repeatable : whether sums of blocks are added in a fixed order.
    packed : whether diagonal blocks are those of `half.packed`.
    """
    return (
        f"REAL={name_of(real)}",
        f"INPUT={name_of(real if vector is None else vector)}",
        f"LANES={shape.lanes}",
        f"THREADS={shape.threads}",
        f"RESIDENT={shape.resident(real)}",
        f"TOGETHER={shape.together}",
        f"FINISH={finish}",
        f"REPEATABLE={int(repeatable)}",
        f"PACKED={int(packed)}",
    )


def elastic_half(finish: int, packed: bool) -> tuple[str, ...]:
    """Return the definitions of elastic_half.cu; not for PRODUCT."""
    single = np.float32
    shared = elastic(single, single, finish, shape=MACRO_SHAPE, packed=packed)
    return (*shared, "HALF=1", f"SLOTS={MACRO_SLOTS}")


# bytes of shared memory of its thread blocks: displacements and forces
HALF_MEMORY = 2 * MACRO_SLOTS * 3 * SHAPE.lanes * 2


# threads of a thread block of macro.cu, the best of those measured (benchmarks), and
# blocks that a multiprocessor shall hold, which bounds their registers
MACRO_THREADS = 512
_MACRO_BLOCKS = {np.dtype(np.float32): 2, np.dtype(np.float64): 1}


def macro_tasks() -> Tasks:
    """Return the tables that macro.cu is compiled for."""
    return make_tasks(MACRO_THREADS // 32)


def _places() -> int:
    """Places of a plane; neighbouring planes begin three banks apart."""
    places = macro_tasks().n_place
    return int(places + (3 - places) % 8)


def macro(
    real: Any, vector: Any, finish: int, half: bool = False, packed: bool = False
) -> tuple[str, ...]:
    """Return the definitions of macro.cu.

    Parameters
    ----------
    real : precision of the arithmetic. vector : of the vector, REAL or float32.
    half : whether products are in FP16; all else is in FP32 then. packed : as above.
    """
    tasks = macro_tasks()
    return (
        *elastic(real, vector, finish)[:3],
        f"HALF={int(half)}",
        f"PACKED={int(packed)}",
        f"THREADS={MACRO_THREADS}",
        f"RESIDENT={_MACRO_BLOCKS[np.dtype(real)]}",
        f"FINISH={finish}",
        "REPEATABLE=0",
        f"N_NODE={len(tasks.nodes)}",
        f"N_BLOCK={tasks.matrices.shape[1]}",
        f"ZERO={tasks.zero}",
        f"N_PLACE={_places()}",
    )


def macro_memory(real: Any, half: bool = False) -> int:
    """Bytes of shared memory of a thread block of macro.cu."""
    size = 2 if half else np.dtype(real).itemsize
    vector = 3 * SHAPE.lanes * _places() * size
    # blocks begin at 16 bytes
    return int(-(-vector // 16) * 16 + 9 * macro_tasks().matrices.shape[1] * size)


def sparse(real: Any, store: Any = None) -> tuple[str, ...]:
    """Return the definitions of sparse.cu for vectors and stored matrix values."""
    half = store is not None and np.dtype(store) == np.float16
    return (f"REAL={name_of(real)}", f"HALF={int(half)}")


def vectors(y: Any, x: Any) -> tuple[str, ...]:
    """Return the definitions of vectors.cu for the precisions of two vectors."""
    return (f"Y={name_of(y)}", f"X={name_of(x)}")


def creep(state: Any) -> tuple[str, ...]:
    """Return the definitions of creep.cu for the precision of states."""
    return (f"STATE={name_of(state)}",)


def basis(x: Any) -> tuple[str, ...]:
    """Return the definitions of basis.cu for the precision of the vectors."""
    return (f"X={name_of(x)}",)


# threads of a column of four lanes, two each
_HALF = 2


@dataclass(frozen=True, slots=True)
class VoxelShape:
    """Sizes that voxel.cu is compiled for.

    Attributes
    ----------
    x, y : element columns of a thread block. planes : that it marches.
    per : lanes of a thread. resident : thread blocks of a multiprocessor.
    """

    x: int
    y: int
    planes: int
    per: int
    resident: int


def voxel_shape(real: Any, nodes: tuple[int, int, int], processors: int) -> VoxelShape:
    """Return the sizes that march a grid in the least time by a simple count.

    Columns at the edges of blocks are computed twice, a block at the end of the grid
    has idle columns, and so has a multiprocessor in the last round of blocks. Half of
    the time of a plane is taken to be as long for few threads as for many. Blocks own
    one column less than they have along x, so that each begins at 256 bytes: others
    were a tenth slower.

    Parameters
    ----------
    nodes : of the grid along x, y, z. processors : multiprocessors of the GPU.
    """
    single = np.dtype(real) == np.float32
    most, widths = (256, (17, 33)) if single else (128, (9, 17))
    nx, ny, nz = nodes
    chunks = sorted({-(-nz // count) for count in range(1, max(2, nz // 16 + 1))})

    def cost(shape: tuple[int, int, int]) -> float:
        x, y, planes = shape
        blocks = -(-nx // (x - 1)) * -(-ny // (y - 1)) * -(-nz // planes)
        warps = -(-x * y * _HALF // 32)
        rounds = -(-blocks // processors)
        return rounds * (planes + 1.5) * (most * _HALF // 32 + warps)

    sizes = (
        (x, y, planes)
        for x in widths
        for y in range(most // x, 3, -1)
        if x * y >= 0.85 * most
        for planes in chunks
    )
    x, y, planes = min(sizes, key=cost)
    return VoxelShape(x, y, planes, 2, 1)


def voxel_staged(real: Any, relaxing: bool) -> bool:
    """Tell whether planes come through shared memory: the faster of the two."""
    return relaxing or np.dtype(real) == np.float64


def voxel(
    real: Any,
    shape: VoxelShape,
    beta_lam: float,
    beta_mu: float,
    relaxing: bool = False,
) -> tuple[str, ...]:
    """Return the definitions of voxel.cu."""
    return (
        f"REAL={name_of(real)}",
        f"PER={shape.per}",
        f"TX={shape.x}",
        f"TY={shape.y}",
        f"RESIDENT={shape.resident}",
        f"BETA_LAM={beta_lam!r}",
        f"BETA_MU={beta_mu!r}",
        f"BODIES={int(relaxing)}",
        f"STAGED={int(voxel_staged(real, relaxing))}",
    )


def int8_shape() -> VoxelShape:
    """Return the best sizes of those that `benchmarks/waves.py --sweep` measures."""
    return VoxelShape(8, 8, 64, 1, 2)


def int8(shape: VoxelShape, digits: int, bits: int) -> tuple[str, ...]:
    """Return the definitions of voxel_int8.cu."""
    return (
        f"DIGITS={digits}",
        f"BITS={bits}",
        f"TX={shape.x}",
        f"TY={shape.y}",
        f"RESIDENT={shape.resident}",
    )
