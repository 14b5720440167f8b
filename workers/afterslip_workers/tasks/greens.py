"""One group of unit sources: solve; then write, synchronise, read back, say so.

All are steps of one process, or of two: what one has solved then crosses memory that
they share, and the next group is solved while this one is evaluated and written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from afterslip.archive import StoreLayout, chunk_file, create_group_store
from afterslip.error_class import ErrorClass
from afterslip.schemas.campaign import Campaign
from afterslip.spec import parse_stored
from afterslip_workers.engines.base import (
    Arrays,
    Engine,
    EvaluatingEngine,
    GroupWork,
    Phase,
)
from afterslip_workers.engines.base import Solved as EngineSolved
from afterslip_workers.engines.models import (
    campaign_facts,
    campaign_model,
    just_built,
)
from afterslip_workers.engines.registry import failures_of, find
from afterslip_workers.errors import TaskError, classify
from afterslip_workers.machine import exchange
from afterslip_workers.messages import (
    Cover,
    Envelope,
    Group,
    GroupManifest,
    Manifest,
    Stats,
)
from afterslip_workers.store import manifest
from afterslip_workers.store.result_folders import GROUP_FOLDER
from afterslip_workers.tasks import taking
from afterslip_workers.tasks.ahead import ahead
from afterslip_workers.tasks.context import Context
from afterslip_workers.tasks.coordinates import has_crc32c, stations_of
from afterslip_workers.tasks.results import write_result


@dataclass(frozen=True, slots=True)
class Solved:
    """A group as it will be stored.

    Attributes
    ----------
    values : the grouped arrays of the store's layout.
    taken : those of its sources that other campaigns had solved.
    facts : of the campaign: the store may be away when the group is written.
    """

    values: Arrays
    taken: list[int] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)


Evaluation = Callable[[Phase], Solved]
# groups that were solved, one after the other
_evaluating = ThreadPoolExecutor(1, thread_name_prefix="evaluating")


def run(context: Context) -> tuple[Manifest, Stats]:
    """Solve the envelope's group and seal it in the attempt's folder."""
    return write(context, solve(context)(context.phase))


def hand_over(context: Context, path: str) -> None:
    """Solve the envelope's group, and leave it for the process that writes it.

    It is evaluated while this process goes on with the next one.
    """
    token, should_stop = context.envelope.token, context.should_stop
    if token in ahead:
        context.lap("solving")
    evaluate = ahead.take(token, should_stop, context.report) or solve(context)
    _evaluating.submit(_send, exchange.Sending(path), evaluate)


def _send(sending: exchange.Sending, evaluate: Evaluation) -> None:
    try:
        solved = evaluate(lambda _: None)
    except BaseException as error:  # noqa: BLE001 - the other process says so
        failure = classify(error)
        sending.save({"failure": [failure.error_class, failure.message]}, {})
        return
    names = "taken", "stats", "history", "facts"
    sending.save({name: getattr(solved, name) for name in names}, solved.values)


def take_over(context: Context, path: str) -> tuple[Manifest, Stats]:
    """Seal what another process has solved.

    Raises
    ------
    TaskError
        That process failed to evaluate it, or died.
    """
    # by the other process, and nothing is left to do where that was fast
    context.phase("evaluating")
    try:
        beside, values = exchange.load(path)
    except EOFError as error:
        text = f"the solving process ended before the group was evaluated ({error})"
        raise TaskError(ErrorClass.KILLED, text) from error
    if "failure" in beside:
        raise TaskError(*beside["failure"])
    return write(context, Solved(values, **beside))


def solve(context: Context) -> Evaluation:
    """Solve the envelope's group; what is returned evaluates it."""
    envelope = context.envelope
    # first: a worker that lacks both halves lacks the engine
    engine = find(envelope.physics)
    spec = parse_stored(envelope.spec)
    facts = campaign_facts(context.store_backend, envelope.campaign)
    layout = engine.physics.layout(facts)
    with failures_of(engine):
        work = _work(context, engine, spec, facts)
        gather = _gather(context, engine, layout, work)

    def evaluate(phase: Phase) -> Solved:
        with failures_of(engine):
            return replace(gather(phase), facts=facts)

    return evaluate


def solve_ahead(context: Context) -> Evaluation | None:
    """Solve the envelope's group beside others, if its engine can do that."""
    if not isinstance(find(context.envelope.physics), EvaluatingEngine):
        return None
    return solve(context)


def write(context: Context, solved: Solved) -> tuple[Manifest, Stats]:
    """Seal a solved group in the attempt's folder; return manifest and counts."""
    envelope = context.envelope
    layout = find(envelope.physics).physics.layout(solved.facts)
    stats = Stats.model_validate(solved.stats)
    context.phase("writing")
    seal = partial(_seal, context, layout, solved, stats)
    written, refused = write_result(envelope, GROUP_FOLDER, seal)
    return written, stats if refused is None else stats.but(spooled=refused)


def _seal(
    context: Context,
    layout: StoreLayout,
    solved: Solved,
    stats: Stats,
    folder: Path,
) -> Manifest:
    context.lap("writing")
    envelope, part = context.envelope, folder / GROUP_FOLDER
    facts = solved.facts
    assert envelope.group is not None  # noqa: S101 - of every envelope of this kind
    manifest.clear(part)
    written = GroupManifest(
        token=envelope.token,
        kind="greens",
        campaign=envelope.campaign,
        model_digest=facts["digest"],
        group=Group(index=envelope.group.index, sources=envelope.sources),
        files=_write_store(context, part, layout, solved.values, has_crc32c(facts)),
        stats=stats,
        history=solved.history,
        covers=_covers(envelope, facts, solved.taken),
    )
    manifest.commit(folder, written)
    return written


def _work(
    context: Context, engine: Engine, spec: Campaign, facts: dict[str, Any]
) -> GroupWork:
    envelope, files, phase = context.envelope, context.files, context.phase

    def model() -> Any:
        # both hold the model before this one in memory
        _evaluating.submit(int).result()
        ahead.drop()
        built = just_built(context.warm, facts)
        if built is not None:
            return built.model
        where = context.store_backend, spec, files
        return campaign_model(engine, *where, facts, phase, envelope.max_elements)

    return GroupWork(
        spec=spec,
        campaign=envelope.campaign,
        facts=facts,
        model=model,
        sources=envelope.sources,
        stations=stations_of(facts),
        store=context.store_backend,
        backend=envelope.backend,
        escalation=envelope.escalation,
        warm=context.warm,
        phase=context.phase,
        report=context.report,
        should_stop=context.should_stop,
    )


def _gather(
    context: Context, engine: Engine, layout: StoreLayout, work: GroupWork
) -> Evaluation:
    """Take what other campaigns have solved of a group, and solve the rest."""
    origins = context.envelope.taken
    taken: dict[int, Arrays] = {}
    if origins:
        context.phase("taking what is stored")
        taken = taking.take(engine, work, origins)
    missing = [source for source in work.sources if source not in taken]
    begun = _begin(engine, replace(work, sources=missing)) if missing else None

    def evaluate(phase: Phase) -> Solved:
        found = Solved({}, stats={"solves": 0, "iterations": 0})
        if begun is not None:
            solved = begun(phase)
            found = Solved(solved.values, [], solved.stats, solved.history)
        if not taken:
            return found
        sources = dict(taken)
        for row, source in enumerate(missing):
            sources[source] = {n: v[row] for n, v in found.values.items()}
        values = taking.stack(layout, [sources[source] for source in work.sources])
        stats = {**found.stats, "taken": len(taken)}
        return Solved(values, list(taken), stats, found.history)

    return evaluate


def _begin(engine: Engine, work: GroupWork) -> Callable[[Phase], EngineSolved]:
    if isinstance(engine, EvaluatingEngine):
        return engine.begin(work)
    solved = engine.solve(work)
    return lambda _: solved


def _covers(
    envelope: Envelope, facts: dict[str, Any], taken: Sequence[int]
) -> dict[int, Cover]:
    """Say of each source what it is good for, and where it came from."""
    own = facts.get("covers") or {}
    covers = {}
    for source in envelope.sources if own else ():
        origin = envelope.taken[source] if source in taken else None
        covers[source] = Cover(
            quality=own if origin is None else origin.quality,
            origin=origin and origin.campaign,
            origin_position=origin and origin.position,
        )
    return covers


def _write_store(
    context: Context,
    part: Path,
    layout: StoreLayout,
    values: Arrays,
    crc32c: bool,
) -> dict[str, str]:
    """Write the group's store and return the checksums of its chunk files."""
    create_group_store(part, layout, values, crc32c=crc32c)
    context.lap("sealing")
    sums = manifest.seal(part)
    context.lap("reading back")
    _read_back(part, values)
    names = [chunk_file(variable, 0) for variable in layout.grouped]
    return {name: sums[name] for name in names}


def _read_back(part: Path, values: dict[str, Any]) -> None:
    """Compare what the disk holds with what was meant.

    Raises
    ------
    TaskError
        Class ``store_full``: the file system stored something else.
    """
    stored: Any = zarr.open_group(str(part), mode="r")
    for name, value in values.items():
        array = stored[name]
        there = array[tuple(slice(n) for n in np.shape(value))]
        meant = np.asarray(value).astype(array.dtype, copy=False)
        # bit for bit: NaN is the same NaN
        if there.shape != meant.shape or not np.array_equal(_bits(there), _bits(meant)):
            raise TaskError(
                ErrorClass.STORE_FULL,
                f"{name} reads back differently: check the store's disk",
            )


def _bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    flat: NDArray[np.uint8] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return flat
