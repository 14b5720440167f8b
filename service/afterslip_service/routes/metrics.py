"""Figures for Prometheus, taken from the database when they are asked for.

Every process of the service gives the same answer, because nothing is counted in
memory; a restart loses nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from afterslip_service.db import leases, scrubbing, usage
from afterslip_service.http.deps import Service, ServiceDep
from afterslip_service.placement.base import WorkerFacts
from afterslip_service.reconcile import scrubber
from afterslip_service.reconcile.leadership import LEASE
from afterslip_workers import entry

router = APIRouter(tags=["health"])

# of a worker's facts: name of the figure, and what it is
GPU_FACTS = {
    "gpu_memory_used": ("afterslip_worker_gpu_memory_bytes", "GPU memory in use"),
    "gpu_utilization": ("afterslip_worker_gpu_utilization_percent", "GPU busy"),
    "gpu_process_memory": (
        "afterslip_worker_gpu_process_memory_bytes",
        "GPU memory of the worker's own processes",
    ),
    "gpu_process_utilization": (
        "afterslip_worker_gpu_process_utilization_percent",
        "GPU busy with the worker's own processes",
    ),
    "memory_used": ("afterslip_worker_memory_bytes", "memory of the worker's process"),
}


class _Scrape:
    """One look at everything."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def collect(self) -> Iterator[Metric]:
        """Return all figures."""
        with self.service.database.read() as connection:
            found = usage.census(connection)
            leads = leases.holder(connection, LEASE) is not None
            scrubbed = scrubber.Record.of(scrubbing.record(connection))
        yield from _of_work(found)
        led = GaugeMetricFamily(
            "afterslip_dispatcher_leads", "1 while a dispatcher holds the lease"
        )
        led.add_metric([], float(leads))
        yield led
        yield from _of_scrubber(scrubbed)
        yield from _of_store(self.service.settings.store)
        placement = self.service.placement
        if placement is not None:
            yield from _of_workers(placement.workers())


def _of_work(found: usage.Census) -> Iterator[Metric]:
    states = GaugeMetricFamily(
        "afterslip_campaigns", "campaigns by state", labels=["state"]
    )
    for state, count in found.campaigns.items():
        states.add_metric([state], count)
    yield states
    kinds = GaugeMetricFamily(
        "afterslip_jobs", "models, groups and inversions by state",
        labels=["kind", "state"],
    )  # fmt: skip
    for key, count in found.jobs.items():
        kinds.add_metric(list(key), count)
    yield kinds
    waiting = GaugeMetricFamily("afterslip_queue_depth", "groups that wait for a slot")
    waiting.add_metric([], found.jobs.get(("group", "waiting"), 0))
    yield waiting
    ends = GaugeMetricFamily(
        "afterslip_attempts", "attempts by state and class of error; lost and failed "
        "ones were tried again",
        labels=["state", "error"],
    )  # fmt: skip
    for key, count in found.attempts.items():
        ends.add_metric(list(key), count)
    yield ends
    for name, text, value in (
        ("afterslip_groups_solved", "accepted groups", found.groups),
        ("afterslip_solve_seconds", "worker seconds of accepted groups", found.seconds),
        ("afterslip_iterations", "iterations of accepted groups", found.iterations),
        ("afterslip_recoveries", "failed or lost attempts that were tried again",
         found.retried),
        ("afterslip_sources_stored", "unit sources that are stored", found.sources),
        ("afterslip_sources_reused", "of these, copied instead of solved",
         found.reused),
    ):  # fmt: skip
        total = CounterMetricFamily(name, text)
        total.add_metric([], value)
        yield total


def _of_scrubber(record: scrubber.Record) -> Iterator[Metric]:
    for name, text, value in (
        ("afterslip_scrub_bytes", "read by the scrubber", record.bytes),
        ("afterslip_scrub_files", "files that the scrubber compared", record.files),
        ("afterslip_scrub_damaged", "files that it found damaged", record.damaged),
        ("afterslip_scrub_cycles", "times that it read everything", record.cycles),
    ):
        total = CounterMetricFamily(name, text)
        total.add_metric([], value)
        yield total
    age = scrubber.oldest(record)
    if age is not None:
        figure = GaugeMetricFamily(
            "afterslip_scrub_oldest_seconds", "age of the oldest verification of a file"
        )
        figure.add_metric([], age)
        yield figure


def _of_store(store: Path | str) -> Iterator[Metric]:
    """Say how full the store's disk is; a bucket has no end."""
    if entry.is_bucket(store):
        return
    disk = shutil.disk_usage(store)
    for name, text, value in (
        ("afterslip_store_free_bytes", "free on the store's disk", disk.free),
        ("afterslip_store_used_bytes", "used on the store's disk", disk.used),
    ):
        figure = GaugeMetricFamily(name, text)
        figure.add_metric([], value)
        yield figure


def _of_workers(workers: list[WorkerFacts]) -> Iterator[Metric]:
    slots = GaugeMetricFamily(
        "afterslip_worker_slots", "attempts that a worker takes at a time",
        labels=["worker"],
    )  # fmt: skip
    for worker in workers:
        slots.add_metric([worker.name], worker.slots)
    yield slots
    for fact, (name, text) in GPU_FACTS.items():
        figure = GaugeMetricFamily(name, text, labels=["worker"])
        for worker in workers:
            value = worker.facts.get(fact)
            if value is not None:
                figure.add_metric([worker.name], float(value))
        yield figure


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(service: ServiceDep) -> Response:
    """Give Prometheus the state of queue, attempts and workers."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scrape(service))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
