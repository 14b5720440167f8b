"""What steps of elastic waves need of a backend, and its choice by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from afterslip_solver.backend.base import LANES, BackendError
from afterslip_solver.backend.cpu.digits import BETA, FEWEST, MOST, CpuInt8Steps
from afterslip_solver.backend.cpu.wave_steps import CpuWaveSteps
from afterslip_solver.backend.slabs import Slab, SlabSteps, cut, voxels_of

Float = NDArray[np.float64]
Int = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relaxing:
    """Zener bodies, one in each voxel, of eight kinds in cubes of two by two by two.

    Attributes
    ----------
    lam, mu : (nz - 1, ny - 1, nx - 1) float32, Pa, of what relaxes.
    times : (8,) s, of relaxation; a voxel's kind has the parity of i, j, k as its bits.
    """

    lam: NDArray[np.float32]
    mu: NDArray[np.float32]
    times: Float


@dataclass(frozen=True, slots=True)
class Voxels:
    """Voxels with their element; host arrays.

    Attributes
    ----------
    shape : numbers of nodes along x, y, z. h : m.
    lam, mu : (nz - 1, ny - 1, nx - 1) float32, Pa; 0 in air.
    beta_lam, beta_mu : weights of the transverse modes.
    relaxing : None where waves are not attenuated.
    """

    shape: tuple[int, int, int]
    h: float
    lam: NDArray[np.float32]
    mu: NDArray[np.float32]
    beta_lam: float
    beta_mu: float
    relaxing: Relaxing | None = None

    @property
    def n_row(self) -> int:
        """Components times nodes; row r is component r // n_node of node r % n_node."""
        return 3 * int(np.prod(self.shape))


class WaveSteps(Protocol):
    """Displacement u, m, and velocity v, m/s, of four lanes, and how they move.

    ``slabs`` are where they are: arrays (3, node, lane) of the precision ``real``.
    """

    slabs: tuple[Slab, ...]
    real: Any
    name: str

    def share(self, fields: Sequence[Any]) -> None:
        """Give each slab the planes of its neighbours that it holds, of its field."""

    def prepare(self, dt: float, inverse: Float, damped: Any) -> None:
        """Fix the step.

        Parameters
        ----------
        dt : s.
        inverse : (n_row,) 1/kg, of mass and dampers; 0 in air.
        damped : rows (n,), and what v is multiplied by and u is subtracted with
            there before a step, (n,) each.
        """

    def begin(self, rows: Int, loads: Float) -> None:
        """Be at rest, with loads (n, lane), N, in some rows."""

    def step(self, moment: float) -> None:
        """Go on by one step; loads are multiplied by the moment at its begin."""

    def read(self, what: str, rows: Int) -> Float:
        """Return "u" or "v" in some rows, (n, lane) float64."""

    def watch(self, rows: Int, matrix: csr_array | None) -> Callable[[str], Float]:
        """Return what finds, of "u" or "v", some rows, or a matrix times them.

        Parameters
        ----------
        matrix : (n, len(rows)); None: the rows themselves. Sums are of float64.
        """

    def kinetic(self) -> Float:
        """(lane,) J, kinetic energy, dampers' mass included."""

    def state(self) -> dict[str, Any]:
        """Return u, v and what else the next step needs, as host arrays."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""


def bytes_needed(
    shape: tuple[int, int, int], real: Any, relaxing: bool = False, slabs: int = 1
) -> int:
    """Memory that a slab takes at most, which is when the highest frequency is found.

    Six vectors of four lanes then, later u and v, on a GPU a second u; coefficients;
    materials. Memory of Zener bodies is there twice on a GPU.
    """
    size = int(np.dtype(real).itemsize)
    memory = 2 * 6 * LANES * size + 8 if relaxing else 0
    nx, ny, nz = shape
    # with planes of its neighbours
    planes = nz if slabs == 1 else -(-nz // slabs) + 3
    return nx * ny * planes * (6 * 12 * size + 3 * size + 12 + memory)


def wave_steps(
    name: str, voxels: Voxels, real: Any, digits: int = 0, slabs: int = 1
) -> WaveSteps:
    """Return steps on the ``cpu`` or the ``gpu``.

    Parameters
    ----------
    real : np.float32 or np.float64.
    digits : 3 to 7: forces by INT8 products of so many digits, in FP64; 0: by `real`.
    slabs : parts along z, each on a GPU of its own.

    Raises
    ------
    BackendError
        The name is unknown, there are not as many CUDA devices or planes, or the
        element is not one of integers.
    """
    if digits:
        _require_integers(voxels, digits)
    if name == "gpu":
        return _on_gpus(voxels, real, digits, slabs)
    if name != "cpu":
        raise BackendError(f"unknown backend {name!r}: use 'cpu' or 'gpu'")

    def make(own: Voxels) -> CpuWaveSteps:
        return CpuInt8Steps(own, digits) if digits else CpuWaveSteps(own, real)

    if slabs == 1:
        return make(voxels)
    nx, ny, nz = voxels.shape
    parts = [
        Slab(make(voxels_of(voxels, planes)), planes, nx * ny)
        for planes in cut(nz, slabs)
    ]
    return SlabSteps(parts, voxels.shape)


def _on_gpus(voxels: Voxels, real: Any, digits: int, slabs: int) -> WaveSteps:
    try:
        from afterslip_solver.backend.cuda import peers
        from afterslip_solver.backend.cuda.wave_steps import GpuInt8Steps, GpuWaveSteps
    except ImportError as error:
        message = "CuPy is not installed (the extra 'gpu')"
        raise BackendError(message) from error

    def make(own: Voxels) -> Any:
        return GpuInt8Steps(own, digits) if digits else GpuWaveSteps(own, real)

    if slabs == 1:
        one: WaveSteps = make(voxels)
        return one
    nx, ny, nz = voxels.shape
    devices = peers.devices(slabs)
    parts = []
    for planes, device in zip(cut(nz, slabs), devices, strict=True):
        on = partial(peers.on, device)
        with on():
            steps = make(voxels_of(voxels, planes))
        parts.append(Slab(steps, planes, nx * ny, on))
    return SlabSteps(parts, voxels.shape, peers.PeerCopies(devices))


def _require_integers(voxels: Voxels, digits: int) -> None:
    if voxels.relaxing is not None:
        raise BackendError("INT8 products have no attenuation: use fp32 or fp64")
    if not FEWEST <= digits <= MOST:
        raise BackendError(f"{digits} digits: write {FEWEST} to {MOST}")
    if (voxels.beta_lam, voxels.beta_mu) != (BETA, BETA):
        raise BackendError(
            f"weights {voxels.beta_lam:g} and {voxels.beta_mu:g} make no integers: "
            "INT8 products are of the orthogonal element, with 0.75"
        )
