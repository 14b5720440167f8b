"""The computing process: takes envelopes on stdin, answers on its first stdout.

Started as ``python -m afterslip_workers.child PARENT_PID``. It never outlives its
parent: the kernel kills it when the parent dies, and where the kernel cannot, the
end of its standard input does.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import structlog

from afterslip_common.observe import logs, telemetry
from afterslip_workers.engines.registry import check_rheologies, load_all
from afterslip_workers.errors import POISON, CancelledError, TaskError, classify
from afterslip_workers.machine import device, heap
from afterslip_workers.machine.model_cache import ModelCache, WarmOnly, warm_limit
from afterslip_workers.messages import (
    Manifest,
    Receipt,
    Stats,
    failed,
    read_envelope,
)
from afterslip_workers.process import channel
from afterslip_workers.process.answer import Answer
from afterslip_workers.process.parent import die_with_parent
from afterslip_workers.process.request import Request
from afterslip_workers.store import spool
from afterslip_workers.store.backend import StoreBackend
from afterslip_workers.store.paths import LOG
from afterslip_workers.tasks.ahead import Job, ahead
from afterslip_workers.tasks.context import Context

log = structlog.get_logger()
# after a campaign's model its first group comes sooner
_IDLE_S = 3.0
# between two threads that both want the interpreter; Python's own is 5 ms
_SWITCH_S = 0.0005


def main() -> None:
    """Serve envelopes until the parent goes away."""
    die_with_parent(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "wb")
    requests = os.fdopen(os.dup(0), "rb")
    _point_at(os.devnull, os.O_RDONLY, 0)
    # the log of the worker; what is printed from now on goes to the attempt's own
    lines = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(2, 1)
    logs.inherit(lines)
    telemetry.start("child", lines)
    faulthandler.enable()
    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _hear(stop)
    if not select.select([requests], [], [], 0.0)[0]:
        # started ahead of its first task
        _import_ahead()
        _hear(stop)
    # what is evaluated beside a solve shall not hold it up whenever that has waited
    sys.setswitchinterval(_SWITCH_S)
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    warm = ModelCache(warm_limit())
    listener = threading.Thread(target=_listen, args=(requests, inbox, warm))
    listener.daemon = True
    listener.start()
    while True:
        try:
            message = inbox.get(timeout=_IDLE_S)
        except queue.Empty:
            ahead.drop()
            heap.give_back()
            message = inbox.get()
        stop.clear()
        channel.send(answers, _answer(message, answers, stop, warm).as_json())


def _import_ahead() -> None:
    """Import what models and groups need, in seconds that nobody waits for.

    Where processors solve, their kernels are compiled too, or loaded if they were; on a
    GPU `compiling` does that. What fails here fails again in the first task, whose
    attempt says so.
    """
    try:
        from afterslip_workers.tasks import greens, model  # noqa: F401

        load_all()
        if not device.graphics():
            from afterslip_solver.compile_ahead import compile_ahead

            compile_ahead()
    except Exception:
        log.exception("nothing is prepared ahead of the first task")


def _hear(stop: threading.Event) -> None:
    """Stop the task on SIGTERM; asked again and again, as libraries take it away."""
    signal.signal(signal.SIGTERM, lambda *_: stop.set())


def _listen(
    requests: BinaryIO, inbox: queue.SimpleQueue[dict[str, Any]], warm: ModelCache
) -> None:
    while (message := channel.receive(requests)) is not None:
        if message.get("step") != "ahead":
            inbox.put(message)
            continue
        content = message["envelope"]
        ahead.begin(content["token"], partial(_solved, content, WarmOnly(warm)))
    os._exit(0)


def _solved(content: dict[str, Any], warm: ModelCache, job: Job) -> Any:
    """Solve a group before its turn; see `greens.hand_over`."""
    from afterslip_workers.tasks import greens

    context = Context(
        envelope=read_envelope(content),
        report=job.report,
        should_stop=job.stop.is_set,
        warm=warm,
    )
    return greens.solve_ahead(context)


def _point_at(path: str | Path, flags: int, *handles: int) -> None:
    opened = os.open(path, flags, 0o644)
    for handle in handles:
        os.dup2(opened, handle)
    os.close(opened)


@contextmanager
def _logging_to(folder: Path) -> Iterator[None]:
    """Send everything printed, also by compiled code, to the attempt's log."""
    sys.stdout.flush()
    _point_at(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 1, 2)
    try:
        yield
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        _point_at(os.devnull, os.O_WRONLY, 1, 2)


def _answer(
    message: dict[str, Any],
    answers: BinaryIO,
    stop: threading.Event,
    warm: ModelCache,
) -> Answer:
    """Do what one request says; whatever happens becomes an answer."""
    started, began = time.monotonic(), time.time()
    solves = telemetry.Solves()

    def report(news: dict[str, Any]) -> None:
        _hear(stop)
        solves.take(news)
        channel.send(answers, {"progress": news})

    try:
        request = Request.model_validate(message)
        content = request.envelope
        envelope = read_envelope(content)
        with (
            _logging_to(spool.folder_of(envelope)),
            logs.about(content),
            telemetry.continued(envelope.kind, content, envelope.trace),
        ):
            log.info("task begins", pid=os.getpid())
            context = Context(
                envelope=envelope,
                report=report,
                should_stop=stop.is_set,
                warm=warm,
            )
            answer = _run(request, context)
            receipt = answer.receipt
            log.info("task ended", outcome=receipt.outcome, **_cause(receipt))
    except BaseException as error:  # noqa: BLE001 - the log itself may be refused
        token = message.get("envelope", {}).get("token", "")
        answer = _refusal(str(token), error)
    seconds = time.monotonic() - started
    receipt = answer.receipt.but(seconds=seconds, began=began)
    return answer.model_copy(update={"receipt": receipt})


def _cause(receipt: Receipt) -> dict[str, str]:
    error = receipt.error
    return {"error": error.error_class, "message": error.message} if error else {}


def _run(request: Request, context: Context) -> Answer:
    token = context.envelope.token
    try:
        check_rheologies(context.envelope.spec)
        done = _task(context.envelope.kind, request)(context)
    except CancelledError:
        pass  # as long as the error lives, so do the vectors of the solve
    except BaseException as error:  # noqa: BLE001 - every failure is an answer
        with suppress(OSError):
            traceback.print_exc()
        return _refusal(token, error, context.store_backend)
    else:
        phases = context.laps.seconds()
        if done is None:
            solved = Receipt(token=token, outcome="solved", stats=Stats(phases=phases))
            return Answer(receipt=solved, warm_bytes=context.warm.bytes)
        manifest, stats = done
        stored = Receipt(
            token=token,
            outcome="stored",
            manifest=manifest,
            stats=stats.but(phases=phases),
        )
        return Answer(receipt=stored)
    ahead.drop()
    warm = max(context.warm.bytes, device.trim())
    heap.give_back()
    return Answer(receipt=Receipt(token=token, outcome="cancelled"), warm_bytes=warm)


def _refusal(
    token: str, error: BaseException, backend: StoreBackend | None = None
) -> Answer:
    found = classify(error, backend)
    # after what nobody foresaw the process is not trusted with another task
    unforeseen = found.error_class == "internal" and not isinstance(error, TaskError)
    poisoned = unforeseen or found.error_class in POISON
    return Answer(receipt=failed(token, found), poisoned=poisoned)


def _task(
    kind: str, request: Request
) -> Callable[[Context], tuple[Manifest, Stats] | None]:
    """Return what does the work: manifest and figures, or None if it handed over."""
    # imported late: a campaign's model needs gmsh, its groups do not
    if kind == "model":
        from afterslip_workers.tasks import model

        return model.run
    if kind == "group":
        from afterslip_workers.tasks import greens

        if request.exchange is None:
            return greens.run
        step = {"solve": greens.hand_over, "write": greens.take_over}[request.step]
        return partial(step, path=request.exchange)
    from afterslip_workers.tasks import inversion

    return inversion.run


if __name__ == "__main__":
    main()
