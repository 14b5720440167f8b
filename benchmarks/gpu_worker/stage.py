"""The service whose workers are watched, its campaigns, and the processes below it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import meshio
import numpy as np
import psutil
from gpu import Gpu

from afterslip.client import Client
from afterslip.client.campaign import CampaignHandle
from afterslip_service.embedded import Embedded, start
from afterslip_service.placement.cluster import Cluster
from afterslip_solver.testing.box import box_with_fault
from afterslip_workers import entry

CHILD = "afterslip_workers.child"
MESH = "box.msh"
# km; a thrust of 45 degrees that breaks the ground follows the cubes' diagonals
CUBE_KM = 30.0
THRUST = {
    "x": 0.0,
    "y": 0.0,
    "top": 0.0,
    "strike": 0.0,
    "dip": 45.0,
    "length": 4 * CUBE_KM,
    "width": 2 * np.sqrt(2.0) * CUBE_KM,
}
CRUST, MANTLE = 1, 2
BUSY = ("queued", "running")


T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float, what: str) -> T:
    """Wait for something true and return it.

    Raises
    ------
    AssertionError
        If it does not come true in time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(psutil.Error):
            if value := condition():
                return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds:g} s: {what}")


def write_mesh(folder: Path, cubes: tuple[int, int, int]) -> None:
    """Write a box of so many cubes in two layers, with a thrust that breaks the ground.

    It needs no mesher; `refine` of the spec makes it fine.
    """
    made = box_with_fault(
        cubes,
        tuple(CUBE_KM * count for count in cubes),
        **{name: THRUST[name] for name in ("dip", "length", "top", "width")},
    )
    mesh = made.mesh
    depth = -mesh.nodes[mesh.cells].mean(axis=1)[:, 2]
    layers = np.where(depth < CUBE_KM, CRUST, MANTLE)
    triangles = made.faults["main"].triangles[:, :3]
    tags = [layers, np.full(len(triangles), 1)]
    names = {"crust": [CRUST, 3], "mantle": [MANTLE, 3], "main": [1, 2]}
    meshio.Mesh(
        mesh.nodes[: mesh.n_vertex],
        [("tetra", mesh.cells), ("triangle", triangles)],
        cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags},
        field_data={name: np.array(value) for name, value in names.items()},
    ).write(folder / MESH, file_format="gmsh22", binary=True)


def spec(
    name: str,
    cubes: tuple[int, int, int],
    refine: int,
    steps: int,
    backend: str,
) -> dict[str, Any]:
    """Return a campaign of one group of four sources, marched in daily steps.

    It is deterministic: solved again, it is the same but for rounding.
    """
    x, y, depth = (CUBE_KM * count for count in cubes)
    mantle = {"maxwell": {"viscosity": 1.0e19}}
    rock = {"vp": 8.0, "vs": 4.6, "rho": 3300, "rheology": mantle}
    return {
        "name": name,
        "model": {
            "frame": {"kind": "local"},
            "domain": {"x": [-x / 2, x / 2], "y": [-y / 2, y / 2], "depth": depth},
            "layers": [
                {"name": "crust", "bottom": CUBE_KM, "vp": 6.4, "vs": 3.7, "rho": 2800},
                {"name": "mantle", "bottom": depth, **rock},
            ],
            "faults": [{"name": "main", "plane": THRUST}],
            "mesh": {"file": MESH, "refine": refine},
        },
        "sources": {
            "fault": "main",
            "along_strike": 4,
            "down_dip": 1,
            "components": ["dip"],
        },
        "times": {"until": f"{steps} d", "output": ["0 d", f"{steps} d"]},
        "solver": {
            "integrator": "stepping",
            "step": "1 d",
            "tolerance": 1.0e-10,
            "backend": backend,
            "deterministic": True,
        },
    }


@dataclass
class Stage:
    """A service of this process with one worker.

    Attributes
    ----------
    folder : of its database and store.
    gpu : None where there is none.
    placement : where its worker is.
    command : what started the worker, if it is not its own.
    """

    service: Embedded
    client: Client
    folder: Path
    gpu: Gpu | None
    placement: Cluster
    command: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> Path:
        """The store."""
        return self.folder / "store"

    def close(self) -> None:
        """Stop the service and its worker."""
        self.client.close()
        self.service.close()

    def children(self) -> list[psutil.Process]:
        """Return the computing processes below this one: that solve, and that write.

        A worker on a GPU, and one with two threads, has one that solves, which alone
        uses the GPU, and as many that write as were needed at the same time.
        """
        found = []
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                alive = process.status() != psutil.STATUS_ZOMBIE
                if alive and CHILD in process.cmdline():
                    found.append(process)
        return found

    def solver(self) -> psutil.Process | None:
        """Return the process of the worker that solves, None if there is none."""

        def pids() -> list[int]:
            from afterslip_workers.process.supervisor import pool

            return [child.pid for child in (*pool._idle, *pool._busy) if child.alive]  # noqa: SLF001

        (reported,) = self.placement._client.run(pids).values()  # noqa: SLF001
        assert len(reported) <= 1, f"{len(reported)} processes solve"
        return psutil.Process(reported[0]) if reported else None

    def child(self) -> psutil.Process:
        """Return the solving process, which has to be there."""
        found = self.solver()
        assert found is not None, "there is no solving process"
        return found

    def end_children(self) -> None:
        """Kill what idles, so that the next group starts in a new process."""
        found = self.children()
        for process in found:
            process.kill()
        until(lambda: not self.children(), 10, "the solving processes are gone")

    def attempts(self, campaign: CampaignHandle) -> list[dict[str, Any]]:
        """Return every attempt at its group, oldest first."""
        reported: list[dict[str, Any]] = campaign.group(0)["attempts"]
        return sorted(reported, key=lambda attempt: attempt["number"])

    def again(self, campaign: CampaignHandle) -> int:
        """Have its group solved again; returns how many attempts there were."""
        before = len(self.attempts(campaign))
        campaign.act_on_groups("invalidate", [0])
        return before

    def solving(
        self, campaign: CampaignHandle, before: int = 0, seconds: float = 60.0
    ) -> str:
        """Wait until a new attempt is amid its steps, and return its token."""

        def amid() -> str | None:
            ended = self.command is not None and self.command.poll() is not None
            assert not ended, "the worker has ended"
            reported = self.attempts(campaign) if campaign.groups() else []
            if len(reported) <= before or reported[-1]["state"] not in BUSY:
                return None
            token = str(reported[-1]["token"])
            news = entry.read_progress(self.store, token) or {}
            done = news.get("solves_done") or 0
            return token if done >= 3 else None

        return until(amid, seconds, "a group is amid its steps") or ""

    def attempt(self, campaign: CampaignHandle, token: str) -> dict[str, Any]:
        """Return an attempt."""
        return next(a for a in self.attempts(campaign) if a["token"] == token)

    def ended(
        self, campaign: CampaignHandle, token: str, seconds: float
    ) -> dict[str, Any]:
        """Wait for the end of an attempt and return it."""

        def over() -> dict[str, Any] | None:
            found = self.attempt(campaign, token)
            return found if found["finished_at"] else None

        return until(over, seconds, "the attempt has ended") or {}

    def accepted(
        self, campaign: CampaignHandle, before: int, seconds: float
    ) -> np.ndarray:
        """Wait for a result of an attempt after so many, and return its curves.

        Returns
        -------
        (source, mode, node, component) float32.

        Raises
        ------
        AssertionError
            If none comes in time, or the campaign has failed.
        """

        def there() -> bool:
            ended = self.command is not None and self.command.poll() not in (None, 0)
            assert not ended, "the worker has ended with an error"
            state = campaign.refresh().state
            assert state not in ("failed", "cancelled"), f"{state}: {campaign.data}"
            reported = self.attempts(campaign) if state == "complete" else []
            return len(reported) > before and reported[-1]["state"] == "accepted"

        until(there, seconds, "the campaign is complete")
        return np.asarray(campaign.greens()["response"].load())

    def submit(self, content: dict[str, Any]) -> CampaignHandle:
        """Send a campaign."""
        return self.client.submit(content, files_base=self.folder)


def memory(gpu: Gpu | None) -> int:
    """Bytes in use on the GPU; 0 where there is none."""
    return 0 if gpu is None else gpu.used


def harm(folder: Path, pid: int) -> None:
    """Ask a solving process to break its CUDA context."""
    (folder / str(pid)).touch()


def alive(pid: int) -> bool:
    """Tell whether a process runs."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def opened(folder: Path, gpu: Gpu | None, scheduler: str | None = None) -> Stage:
    """Start a service with one worker of its own, or on a scheduler of others."""
    made: list[Cluster] = []

    def placed(_settings: Any) -> Cluster:
        made.append(Cluster(scheduler or "local", 1))
        return made[-1]

    service = start(folder, placement=placed)
    return Stage(service, Client(service.url, token=""), folder, gpu, made[-1])


def processes_below() -> list[psutil.Process]:
    """Return every living process that this one has begun, but Python's own helper."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            helper = "resource_tracker" in " ".join(process.cmdline())
            if not helper and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
