"""Processes as ranks: they solve, a death among them is reported, not waited for."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from rank_jobs import post_and_ask

from afterslip_solver.backend import BackendError
from afterslip_solver.greens import SettingsError, prepare
from afterslip_solver.model import SolverSettings
from afterslip_solver.parallel import (
    DistributedModel,
    ProcessRankGroup,
    RankLostError,
    gpu_rank_group,
    messages,
)
from afterslip_solver.testing.host_exchange import ANSWERS, open_rank
from afterslip_workers.machine.setup_cache import SetupCache


@pytest.fixture
def ranks():
    ranks = ProcessRankGroup(2, open_rank, ANSWERS)
    yield ranks
    ranks.close()


def test_processes_solve_like_one_and_a_killed_one_is_noticed(small, ranks):
    model = small.box_model()
    slip = small.patch_slip(model.faults["main"])
    settings = SolverSettings(tolerance=1e-10)
    trace = model.surface.nodes
    whole = prepare(model, settings, "cpu").solve(slip, trace)
    parts = DistributedModel(model, settings, ranks)
    found = parts.solve(slip, trace)
    scale = np.abs(whole.response).max()
    np.testing.assert_allclose(found.response, whole.response, atol=1e-9 * scale)
    victim = ranks.pids[1]

    def kill(_):
        os.kill(victim, signal.SIGKILL)

    with pytest.raises(RankLostError):
        parts.solve(slip, trace, progress=kill)
    for pid in ranks.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(RankLostError, match="start anew"):
        parts.solve(slip, trace)


def test_processes_that_share_a_model_are_set_up_from_the_disk(small, tmp_path):
    cache = SetupCache(tmp_path / "setup")
    model = small.box_model()
    trace = model.surface.nodes
    slip, responses, written = small.patch_slip(model.faults["main"]), [], []
    for _ in range(2):
        ranks = ProcessRankGroup(2, open_rank, ANSWERS)
        try:
            made = DistributedModel(model, SolverSettings(), ranks, cache=cache)
            responses.append(made.solve(slip, trace).response)
        finally:
            ranks.close()
        written.append({p.name: p.stat().st_ino for p in cache.folder.glob("*.npz")})
    kinds = sorted(name.split("-")[0] for name in written[0])
    assert kinds == ["levels", "numbering", "numbering", "parts", "slow"]
    assert written[0] == written[1]
    assert np.array_equal(responses[0], responses[1])


def test_one_that_died_while_it_waited_is_noticed_when_it_is_asked(ranks):
    os.kill(ranks.pids[1], signal.SIGKILL)
    os.waitid(os.P_PID, ranks.pids[1], os.WEXITED | os.WNOWAIT)
    with pytest.raises(RankLostError, match="killed"):
        ranks.call(repr, [(), ()], {})


def test_parts_of_a_result_arrive_while_ranks_go_on(ranks):
    posted = {}

    def put(rank, what):
        number, values = what
        posted[rank, number] = values

    def is_there(asked):
        return [(rank, number) in posted for rank, (_, number) in enumerate(asked)]

    def all_or_none(asked):
        return [all(is_there(asked))] * 2

    answers = {"is it there": all_or_none}
    assert ranks.call(post_and_ask, [(0,), (10,)], answers, put) == [0, 10]
    assert len(posted) == 12
    for (rank, number), values in posted.items():
        assert np.all(values == (10 * rank + number if number < 5 else 10 * rank))
    with pytest.raises(RuntimeError, match="nobody expects"):
        ranks.call(post_and_ask, [(0,), (10,)], answers)


def test_an_error_of_a_rank_arrives_as_what_it_is(small, ranks):
    model = small.box_model()
    parts = DistributedModel(model, SolverSettings(), ranks)
    slip = small.patch_slip(model.faults["main"])
    with pytest.raises(SettingsError, match="not finite"):
        parts.solve(np.nan * slip, model.surface.nodes)


def test_arrays_in_messages_arrive_whole_and_can_be_written_to():
    one, other = multiprocessing.Pipe()
    sent = {"large": np.arange(3_000_000.0), "empty": np.zeros((0, 3)), "text": "x"}
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(messages.send, one, sent)
        found = messages.receive(other)
        sending.result()
    np.testing.assert_array_equal(found["large"], sent["large"])
    assert found["empty"].shape == (0, 3)
    assert found["text"] == "x"
    found["large"][0] = 1.0
    one.close()
    with pytest.raises(EOFError):
        messages.receive(other)


def test_more_gpus_than_there_are_are_refused():
    with pytest.raises(BackendError, match=r"99 GPUs are asked for|CuPy is not"):
        gpu_rank_group(99)
