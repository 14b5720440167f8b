"""What a worker does when its solving process is cancelled, refused, broken, killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
from gpu import Peak
from stage import Stage, harm, memory, until
from watched import GB, NEAR, Outcome, Watched

from afterslip.client.campaign import CampaignHandle
from afterslip_solver.model import SolverSettings
from afterslip_workers.engines.viscoelastic import preflight
from afterslip_workers.errors import TaskError
from afterslip_workers.process.memory import SLACK

MIB = 1 << 20
GROUP_S = 60.0
# what stays of a process without arrays, and less than a warm model holds
CONTEXT, MARGIN = 700 * MIB, 200 * MIB
TOO_MANY = 20_000_000


def undisturbed(watch: Watched, outcome: Outcome) -> None:
    """Read the GPU's gauges while a group is solved, and whose its seconds are."""
    stage = watch.stage
    watch.end_children()
    began = time.perf_counter()
    gauges: dict[str, list[float]] = {"memory_bytes": [], "utilization_percent": []}

    def complete() -> bool:
        text = httpx.get(f"{stage.client.url}/metrics").text
        for name, values in gauges.items():
            pattern = rf"^afterslip_worker_gpu_{name}{{.*}} (\S+)$"
            values += map(float, re.findall(pattern, text, re.MULTILINE))
        return watch.handle.refresh().state in ("complete", "failed")

    with Peak(stage.gpu) as peak:
        watch.campaign = stage.submit(watch.content)
        until(complete, 150, "the campaign is complete")
    watch.reference = stage.accepted(watch.campaign, 0, 5)
    wall = time.perf_counter() - began
    attempt = stage.attempts(watch.campaign)[-1]
    outcome.seconds("group", attempt["stats"]["seconds"])
    watch.grown = peak.bytes - watch.base
    if watch.gpu:
        outcome.bytes("peak", watch.grown)
        _plausible(stage, gauges, peak.bytes, outcome)
        _held_once(stage, outcome)
    else:
        outcome.skipped.append("gauges of the GPU")
    usage = {row["who"]: row for row in stage.client.usage()}
    used = usage[watch.campaign.id]["worker_seconds"]
    users = sum(row["worker_seconds"] for row in stage.client.usage(by="user"))
    outcome.seconds("accounted", used)
    assert attempt["stats"]["solves"], "nothing was solved, only taken"
    solved = attempt["stats"]["seconds"]
    assert 0.9 * solved <= used <= wall, f"{used} s accounted of {wall} s"
    whole = sum(row["worker_seconds"] for row in usage.values())
    assert abs(users - whole) < 0.01 * whole, f"users have {users} s of {whole} s"


def _plausible(
    stage: Stage, gauges: dict[str, list[float]], peak: int, outcome: Outcome
) -> None:
    held, busy = (max(values, default=-1.0) for values in gauges.values())
    outcome.bytes("gauge", int(held))
    outcome.number("utilization_percent", busy)
    assert abs(held - peak) < 0.25 * peak + GB, f"the gauge's peak is {held / GB} GB"
    if stage.gpu is not None and not stage.gpu.tells_utilization:
        outcome.text = "the driver here reports no utilization"
        assert busy == -1.0, "the gauge of utilization is made up"
        return
    assert 0.0 < busy <= 100.0, f"the gauge of utilization says {busy}"


def _held_once(stage: Stage, outcome: Outcome) -> None:
    """See that processes that only write hold nothing of the GPU."""
    solver, before = stage.child(), memory(stage.gpu)
    writers = [child for child in stage.children() if child.pid != solver.pid]
    outcome.number("writers", len(writers))
    for writer in writers:
        writer.kill()
    until(lambda: len(stage.children()) == 1, 5, "those that write have gone")
    time.sleep(0.5)
    held = before - memory(stage.gpu)
    outcome.bytes("held_by_writers", held)
    assert held < NEAR, f"processes that write held {held / GB:.2f} GB of the GPU"


def cancelled(watch: Watched, outcome: Outcome) -> None:
    """Cancel a group that runs; the next one is fine."""
    stage, campaign = watch.stage, watch.handle
    watch.end_children()
    token = stage.solving(campaign, stage.again(campaign), GROUP_S)
    child, worker = stage.child(), watch.worker()
    during = memory(stage.gpu)
    began = time.perf_counter()
    campaign.cancel()
    attempt = stage.ended(campaign, token, 15)
    took = time.perf_counter() - began
    outcome.seconds("ended", took)
    assert attempt["state"] == "cancelled", attempt
    assert took < 10.0, f"it took {took:.1f} s"
    reported = attempt["stats"]["memory"]
    remaining = 0 if reported["ended"] else SLACK + int(reported["warm"])
    outcome.text = "process ended" if reported["ended"] else "process stays"
    if watch.gpu:
        outcome.seconds("freed", took + watch.released(outcome, during, remaining))
    else:
        outcome.skipped.append("memory of the GPU")
    assert child.is_running() != reported["ended"]
    found = stage.accepted(campaign, _again(watch), GROUP_S)
    assert watch.worker() == worker, "the worker has gone"
    watch.compare(found, outcome)


def _again(watch: Watched) -> int:
    watch.settle()
    return watch.stage.again(watch.handle)


def refused(watch: Watched, outcome: Outcome) -> None:
    """See a group that does not fit refused with numbers, while others go on."""
    stage = watch.stage
    needs = _too_large(watch.content["solver"]["backend"])
    outcome.number("too_large_needs_gb", needs)
    if not watch.gpu:
        outcome.skipped.append("memory that another process holds")
        return
    watch.end_children()
    left = watch.grown // 2
    watch.take(left).taken()
    before = memory(stage.gpu)
    campaign, first = watch.handle, stage.again(watch.handle)
    attempt = until(lambda: _failed(stage, campaign, first), 30, "it is refused")
    assert attempt["error"]["class"] == "no_memory", attempt["error"]
    needs, free = _numbers(attempt["error"]["message"])
    watch.needs = int(needs * GB)
    outcome.number("needs_gb", needs)
    outcome.number("free_gb", free)
    predicted = (needs * GB + preflight.CONTEXT) / watch.grown
    outcome.number("estimate_over_peak", predicted)
    apart = free * GB + preflight.CONTEXT - left
    assert abs(apart) < 0.2 * GB, f"{left / GB:.2f} GB were left, with the context"
    assert memory(stage.gpu) < before + NEAR, "something was allocated"
    reported = campaign.explain(0)
    assert "GB are free" in str(reported), f"explain does not say why: {reported}"
    model = watch.content["model"]
    small = {
        **watch.content,
        "name": "beside it",
        "model": {**model, "mesh": {**model["mesh"], "refine": 0}},
    }
    began = time.perf_counter()
    stage.accepted(stage.submit(small), 0, 60)
    outcome.seconds("other_campaign", time.perf_counter() - began)
    until(lambda: campaign.refresh().state == "failed", 40, "it has failed for good")
    reported = campaign.explain()
    assert "no_memory" in str(reported), f"explain does not say why: {reported}"
    assert "error of this program" not in str(reported), "the advice misleads"
    watch.let_go()
    tried = len(stage.attempts(campaign))
    campaign.retry()
    watch.compare(stage.accepted(campaign, tried, GROUP_S), outcome)
    outcome.number("attempts", tried - first)
    # what is said is rounded
    assert predicted > 0.98, f"{predicted:.2f} of its peak was predicted"


def _failed(
    stage: Stage, campaign: CampaignHandle, before: int
) -> dict[str, Any] | None:
    """Return the first attempt after so many if it has failed."""
    reported = stage.attempts(campaign)[before:]
    return reported[0] if reported and reported[0]["error"] else None


def _numbers(message: str) -> tuple[float, float]:
    """GB that are needed and free, of a refusal."""
    needs = re.search(r"needs about ([0-9.]+) GB", message)
    free = re.search(r"and ([0-9.]+) GB are free", message)
    assert needs, message
    assert free, message
    return float(needs[1]), float(free[1])


def _too_large(backend: str) -> float:
    """See that a model of many elements is refused here; GB that it needs."""
    ones = np.broadcast_to(1.0, (TOO_MANY,))
    viscous = SimpleNamespace(
        viscosity=1e19 * ones, kelvin_viscosity=None, relaxation_time=1e8 * ones
    )
    mesh = SimpleNamespace(
        nodes=np.broadcast_to(0.0, (4 * TOO_MANY // 3, 3)),
        elements=np.broadcast_to(0, (TOO_MANY, 10)),
    )
    model: Any = SimpleNamespace(materials=viscous, mesh=mesh)
    settings = SolverSettings(times=(1e7,), until=1e7)
    try:
        preflight.require(model, settings, backend)
    except TaskError as error:
        return _numbers(error.message)[0]
    raise AssertionError("a model of 80 million unknowns is not refused")


def exhausted(watch: Watched, outcome: Outcome) -> None:
    """Take the memory while a group is prepared or solved."""
    stage, campaign = watch.stage, watch.handle
    if not watch.gpu:
        outcome.skipped.append("all of it")
        return
    watch.end_children()
    # little is left to take when the moment comes, so that it takes no time
    enough = 4 * watch.grown + 2 * watch.needs
    taker = watch.take(0, enough, watch.grown // 2)
    before = stage.again(campaign)
    child, worker = until(stage.solver, 30, "a solving process"), watch.worker()
    outcome.bytes("taken", taker.taken())
    attempt = until(lambda: _failed(stage, campaign, before), 40, "it has failed")
    error = attempt["error"]
    outcome.text = f"{error['class']} ({error['message'][:60]}...)"
    assert error["class"] == "oom", error
    assert not child.is_running(), "its process lives on"

    def next_one() -> bool:
        reported = stage.attempts(campaign)[before + 1 :]
        return bool(reported and reported[0]["error"])

    until(next_one, 40, "the next attempt finds no memory")
    began = time.perf_counter()
    watch.let_go()
    found = stage.accepted(campaign, before, GROUP_S)
    outcome.seconds("done_after_release", time.perf_counter() - began)
    reported = [a["error"]["class"] for a in stage.attempts(campaign)[before:-1]]
    outcome.text += f" then {reported[1:]} then accepted"
    assert watch.worker() == worker, "the worker has gone"
    watch.compare(found, outcome)


def broken(watch: Watched, outcome: Outcome) -> None:
    """Spoil the CUDA context of a solving process by a stray write."""
    stage, campaign = watch.stage, watch.handle
    if not watch.gpu:
        outcome.skipped.append("all of it")
        return
    before = stage.again(campaign)
    token = stage.solving(campaign, before, GROUP_S)
    child, worker = stage.child(), watch.worker()
    began = time.perf_counter()
    harm(stage.folder / "harm", child.pid)
    attempt = stage.ended(campaign, token, 30)
    outcome.seconds("noticed", time.perf_counter() - began)
    error = attempt["error"]
    outcome.text = f"{error['class']} ({error['message'][:60]}...)"
    assert error["class"] == "gpu_error", error
    until(lambda: not child.is_running(), 5, "its process has ended")
    found = stage.accepted(campaign, before, GROUP_S)
    outcome.seconds("done", time.perf_counter() - began)
    assert watch.worker() == worker, "the worker has gone"
    assert stage.child().pid != child.pid, "it is the same process"
    watch.compare(found, outcome)


def gave_way(watch: Watched, outcome: Outcome) -> None:
    """See a warm model dropped where another one needs its memory."""
    stage = watch.stage
    if not watch.gpu:
        outcome.skipped.append("all of it")
        return
    # warm from what came before; all that it holds but its context can be let go
    child = stage.child()
    held = memory(stage.gpu) - watch.base
    assert held > CONTEXT + MARGIN, "it holds too little to have to let it go"
    leave = max(watch.needs - held + CONTEXT + MARGIN, NEAR)
    watch.take(leave).taken()
    outcome.bytes("held", held)
    outcome.bytes("free_beside", leave)
    content = {**watch.content, "name": "another tolerance"}
    # a tighter one, or its curves would be taken from those that are stored
    content["solver"] = {**content["solver"], "tolerance": 0.9e-10}
    other = stage.submit(content)
    stage.accepted(other, 0, GROUP_S)
    reported = stage.attempts(other)
    assert len(reported) == 1, [a["error"] for a in reported]
    assert reported[0]["stats"]["solves"], "nothing was solved, only taken"
    assert stage.child().pid == child.pid, "it was another process"


def killed(watch: Watched, outcome: Outcome) -> None:
    """Kill the solving process; what is solved again is the same."""
    stage = watch.stage
    campaign = watch.handle
    before = stage.again(campaign)
    token = stage.solving(campaign, before, GROUP_S)
    child, worker = stage.child(), watch.worker()
    during = memory(stage.gpu)
    began = time.perf_counter()
    os.kill(child.pid, signal.SIGKILL)
    if watch.gpu:
        outcome.seconds("freed", watch.released(outcome, during))
    else:
        outcome.skipped.append("memory of the GPU")
    attempt = stage.ended(campaign, token, 15)
    outcome.seconds("noticed", time.perf_counter() - began)
    assert attempt["error"]["class"] == "killed", attempt["error"]
    found = stage.accepted(campaign, before, GROUP_S)
    outcome.seconds("done", time.perf_counter() - began)
    assert watch.worker() == worker, "the worker has gone"
    watch.compare(found, outcome)


BEHAVIOURS: dict[str, Callable[[Watched, Outcome], None]] = {
    "metrics": undisturbed,
    "cancel": cancelled,
    "gpu_error": broken,
    "kill": killed,
    "preflight": refused,
    "out_of_memory": exhausted,
    # the last one: from now on its curves would serve all the others
    "room": gave_way,
}
