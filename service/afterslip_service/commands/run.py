"""``afterslip run``: a whole campaign in this process, from spec to report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from afterslip.cli.rows import print_rows
from afterslip.errors import one_problem
from afterslip.units import largest_slip, limits, several
from afterslip_service.umask import private_files

if TYPE_CHECKING:
    from afterslip.client import Client
    from afterslip.client.campaign import CampaignHandle
    from afterslip.schemas.campaign import Campaign

LOOK_EVERY_S = 0.3
HEADS = ("inversion", "Mw", "peak slip", "variance reduction", "CV score")
ENDED = frozenset({"complete", "failed", "cancelled", "paused"})
ENDED_INVERSION = frozenset({"accepted", "failed", "cancelled"})


@private_files()
def run(
    spec: Annotated[Path, typer.Argument(help="Campaign, YAML or JSON.")],
    out: Annotated[
        Path, typer.Option(help="Folder for everything; an earlier run there goes on.")
    ],
    workers: Annotated[
        int | None, typer.Option(min=1, help="Solving processes; one a core if unset.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the page, 0 for any.")] = 0,
) -> None:
    """Run a whole campaign here: model, Green's functions, inversions, report.

    Ctrl-C stops it; the same command goes on where it stopped.
    """
    from afterslip.client import Client
    from afterslip.schemas.campaign import Campaign
    from afterslip_service import embedded

    campaign = Campaign.from_yaml(spec)
    _refuse_others(out, campaign.name)
    console = Console(stderr=True)
    signal.signal(signal.SIGTERM, _interrupt)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with (
            embedded.start(out, workers, port) as service,
            Client(service.url) as client,
        ):
            console.print(f"progress also at {service.url}", highlight=False)
            handle = _begin(client, campaign, console)
            _follow(handle, console)
            handle.refresh()
            found = [inversion.data for inversion in handle.inversions()]
            if handle.state == "complete":
                _deliver(out, handle, found)
    except KeyboardInterrupt:
        console.print(f"stopped; the same command goes on in {out}", highlight=False)
        raise typer.Exit(130) from None
    _verdict(handle.data, found, out, console)


def _refuse_others(out: Path, name: str) -> None:
    """Refuse a folder with the results of another campaign: they would be replaced."""
    try:
        theirs = json.loads((out / "campaign.json").read_text())["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if theirs != name:
        raise one_problem(
            "--out",
            str(out),
            f"holds the results of the campaign {theirs!r}, and this one is {name!r}",
            "name another folder",
        )


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _begin(client: Client, campaign: Campaign, console: Console) -> CampaignHandle:
    """Submit the campaign, or go on with the same one of an earlier run."""
    from afterslip.identity import campaign_digest
    from afterslip.spec.files import LocalFiles

    digest = campaign_digest(campaign, LocalFiles(campaign.base))
    for handle in client.campaigns():
        cancelled = handle.state == "cancelled" or handle.data.get("cancelling")
        if handle.data.get("digest") != digest or cancelled:
            continue
        done = handle.progress.get("accepted", 0)
        total = handle.progress.get("total", 0)
        console.print(f"going on: {done} of {total} groups are done", highlight=False)
        inversions = [inversion.state for inversion in handle.inversions()]
        if handle.state == "failed" or "failed" in inversions:
            handle.retry()
        if handle.state == "paused":
            handle.resume()
        return handle
    return client.submit(campaign)


def _follow(handle: CampaignHandle, console: Console) -> None:
    """Show bars until the campaign and its inversions have ended."""
    from afterslip.client.progress import Display

    with Display(console) as display:
        while True:
            handle.refresh()
            running = handle.state == "running"
            display.update(handle.data, handle.groups() if running else ())
            if handle.state == "complete":
                break
            if handle.state in ENDED:
                return
            time.sleep(LOOK_EVERY_S)
        for inversion in handle.inversions():
            display.say(f"inversion {inversion.name} …")
            while inversion.refresh().state not in ENDED_INVERSION:
                time.sleep(LOOK_EVERY_S)


def _deliver(
    out: Path, handle: CampaignHandle, inversions: list[dict[str, Any]]
) -> None:
    """Put what was found where a user looks for it."""
    from afterslip_service.embedded import STORE

    home = Path(STORE) / "campaigns" / handle.id
    _link(out / "greens.zarr", home / "greens.zarr")
    text = json.dumps(handle.data, indent=2, ensure_ascii=False)
    (out / "campaign.json").write_text(text + "\n")
    sources = {
        item["id"]: out / home / "inversions" / item["id"]
        for item in inversions
        if item["state"] == "accepted"
    }
    copy_results(out, inversions, sources)


def copy_results(
    out: Path, inversions: list[dict[str, Any]], sources: dict[str, Path]
) -> None:
    """Copy results: one to the folder itself, several each to a folder of its name.

    Parameters
    ----------
    sources : id of an accepted inversion → folder of its result.
    """
    from afterslip.client.download import safe_name

    for inversion in inversions:
        source = sources.get(inversion["id"])
        if source is None:
            continue
        folder = out
        if len(inversions) > 1:
            folder = out / safe_name(inversion["name"], inversion["id"])
            folder.mkdir(exist_ok=True)
        for path in source.iterdir():
            shutil.copyfile(path, folder / path.name)
            if folder is not out:
                # of a run with one inversion: it would pass for a result of this run
                (out / path.name).unlink(missing_ok=True)


def _link(link: Path, target: Path) -> None:
    """Point a link at a target, also where it pointed elsewhere before."""
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(link)


def _cells(name: str, summary: dict[str, Any]) -> tuple[str, ...]:
    peak = summary.get("peak_slip")
    return (
        name,
        _figure(summary.get("magnitude"), "{:.2f}")
        + limits(summary.get("magnitude_interval"), ".2f"),
        "" if peak is None else largest_slip(summary, ".1f"),
        _figure(summary.get("variance_reduction"), "{:.1%}"),
        _figure(summary.get("score"), "{:.3g}"),
    )


def _verdict(
    campaign: dict[str, Any], inversions: list[dict[str, Any]], out: Path,
    console: Console,
) -> None:  # fmt: skip
    """Print the figures; exit with 1 if anything failed."""
    if campaign["state"] != "complete":
        error = campaign.get("error") or {}
        reason = error.get("message") or "see the page or the log for why"
        console.print(
            f"{campaign['name']} {campaign['state']}: {reason}", highlight=False
        )
        raise typer.Exit(1)
    rows: list[tuple[str, ...]] = []
    failed = []
    for inversion in inversions:
        if inversion["state"] != "accepted":
            failed.append(inversion)
            continue
        rows.append(_cells(inversion["name"], inversion.get("summary") or {}))
    progress = campaign["progress"]
    typer.echo(
        f"{campaign['name']}: {campaign['n_sources']} Green's functions in "
        f"{several(progress['accepted'], 'group')}, in {out / 'greens.zarr'}"
    )
    if rows:
        print_rows(HEADS, rows, None, as_json=False, as_tsv=False)
    for inversion in failed:
        error = inversion.get("error") or {}
        console.print(
            f"inversion {inversion['name']} {inversion['state']}: "
            f"{error.get('message', '')}",
            highlight=False,
        )
    if failed:
        raise typer.Exit(1)


def _figure(value: Any, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else "–"
