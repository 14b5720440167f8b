"""Runs of ``afterslip fsck`` on stores of the tiny worker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import typer
from typer.testing import CliRunner

from afterslip_service.commands.fsck import fsck
from afterslip_service.db import campaigns, inversions, jobs
from afterslip_service.db.jobs import NewJob
from afterslip_service.engine.states import JobKind


@dataclass(frozen=True)
class Run:
    """What a run has said."""

    status: int
    report: dict[str, Any]
    output: str


def app():
    made = typer.Typer()
    made.command()(fsck)
    return made


def run_fsck(store, path, *options) -> Run:
    """Run the command with its report at a path."""
    arguments = [str(store), *map(str, options), "--json", str(path)]
    done = CliRunner().invoke(app(), arguments)
    assert done.exit_code in {0, 1}, done.output
    return Run(
        done.exit_code, json.loads(path.read_text()), " ".join(done.output.split())
    )


def shard(settings, campaign, group=0):
    """Return the path of the shard of a group's responses."""
    root = settings.store / "campaigns" / campaign / "greens.zarr"
    (found,) = (p for p in (root / "response/c" / str(group)).rglob("*") if p.is_file())
    return found


def kinds(report):
    return sorted(finding["kind"] for finding in report["findings"])


def open_inversion(database, campaign, identity):
    """Ask for an inversion."""
    with database.write() as connection:
        known = jobs.of_campaign(connection, campaign, JobKind.INVERSION)
        new = NewJob(JobKind.INVERSION, len(known), {"id": identity})
        made = jobs.create(connection, campaign, [new])
        job = made[-1]
        inversions.create(
            connection,
            identity=identity,
            campaign=campaign,
            job=job,
            name=identity,
            request={},
        )
        campaigns.refresh(connection, campaign)
