"""``afterslip check``: what a campaign will need, before it is submitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, connect
from afterslip.errors import one_problem
from afterslip.extras import require


def check(
    spec: Annotated[Path, typer.Argument(help="Campaign, YAML or JSON.")],
    mesh: Annotated[
        bool,
        typer.Option("--mesh", help="Also make a coarser mesh, to count better."),
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw a map and a section to this file (.png, .pdf, .svg)."),
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Check a campaign and its files; say its size, memory, time and what is reused.

    Nothing is computed and no campaign is recorded; the files are sent to the server.
    Without one, files and geometry are checked here.
    """
    from afterslip.client.errors import NoServerError
    from afterslip.schemas.campaign import Campaign

    if figure is not None:
        _require_format(figure)
    campaign = Campaign.from_yaml(spec)
    found = _here(campaign)
    if figure is not None:
        from afterslip.plot import plan_map, save

        save(plan_map(found["geometry"], campaign.name), figure)
    with connect(server, token) as client:
        try:
            found |= client.plan(campaign, mesh=mesh)
        except NoServerError as error:
            if server != DEFAULT or mesh:
                raise
            found["server"] = str(error)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for line in lines(found):
            typer.echo(line)
        if figure is not None:
            typer.echo(f"drew {figure}")
    if failure := _failure(found):
        raise one_problem("model", None, failure)


def _require_format(figure: Path) -> None:
    """Refuse a figure whose kind its name does not say, before there is one."""
    require("drawing figures", "plot", "matplotlib")
    from matplotlib.backend_bases import FigureCanvasBase

    if figure.suffix[1:].lower() not in FigureCanvasBase.get_supported_filetypes():
        hint = "end its name in .png, .pdf or .svg"
        raise one_problem("--figure", str(figure), "is no kind of figure", hint)


def _here(campaign: Any) -> dict[str, Any]:
    """Check all that needs no server."""
    from afterslip.physics.registry import find
    from afterslip.spec.files import LocalFiles
    from afterslip.spec.geometry import geometry
    from afterslip.spec.inputs import resolve

    files = LocalFiles(campaign.base)
    inputs = resolve(campaign, files)
    mesh = campaign.model.mesh.file
    size = None if mesh is None else len(files.read(mesh))
    physics = find(campaign.physics)
    work = physics.work(campaign, inputs, size)
    return {
        "accuracy": campaign.model.mesh.accuracy,
        "name": campaign.name,
        "sources": work.sources,
        "groups": -(-work.sources // physics.group_size),
        "elements": int(sum(work.elements.values())),
        "runs": dict(work.runs),
        "way": work.way,
        "perturbed": _perturbed(campaign),
        "geometry": geometry(campaign, inputs),
    }


def _perturbed(campaign: Any) -> list[str]:
    """Names of the campaigns in other earths that inversions ask for."""
    from afterslip.earths import asked_for
    from afterslip.errors import SpecError

    names: list[str] = []
    for index, request in enumerate(campaign.inversions):
        try:
            groups = asked_for(campaign, request)
        except SpecError as error:
            here = f"inversions[{index}]"
            raise SpecError([one.under(here) for one in error.problems]) from None
        names += [one.name for group in groups for one in group]
    return list(dict.fromkeys(names))


def lines(found: dict[str, Any]) -> list[str]:
    """Return what to print of a plan."""
    from afterslip.units import several

    shape = found["geometry"]
    verdict = "a problem was found" if _failure(found) else "no problem found"
    out = [
        f"{found['name']}: {verdict}",
        f"  sources     {found['sources']:,} in {several(found['groups'], 'group')}",
        f"  stations    {len(shape['stations']):,}",
        *_runs(found),
        *_other_earths(found),
    ]
    if found.get("elements") is not None:
        unknowns = found.get("unknowns")
        more = f", {unknowns:,} unknowns" if unknowns else ""
        # what marches through time does so on voxels
        steps = found.get("steps")
        word, after = ("voxels  ", f", {steps:,} steps") if steps else ("elements", "")
        about = f"about {found['elements']:,}{more}{after}{_trial(found)}"
        out.append(f"  {word}    {about}")
    if mesh := found.get("mesh"):
        out.append(f"  mesh        {_mesh(mesh, found.get('accuracy'))}")
    if memory := found.get("memory"):
        free = found.get("memory_free")
        beside = f", and {free / 1e9:.1f} GB are there" if free else ""
        least, most = (f"{memory[n] / 1e9:.2f}" for n in ("least_bytes", "bytes"))
        span = most if least == most else f"{least} to {most}"
        out.append(f"  memory      {span} GB a worker ({memory['backend']}){beside}")
    if found.get("time"):
        out += _time(found)
    elif "server" not in found:
        out.append(
            "  time        not known before the first groups: nothing of this physics "
            "was solved here yet"
        )
    out += [*_inversions(found), *_reuse(found), *_warnings(found)]
    if "server" in found:
        out.append(f"memory, time and reuse are not known: {found['server']}")
    return out


def _other_earths(found: dict[str, Any]) -> list[str]:
    """Name the campaigns that inversions ask for beside this one."""
    names = found.get("perturbed") or []
    each = f"  with it     {len(names)} campaigns in other earths, of as many sources:"
    return [each, *(f"              {name}" for name in names)] if names else []


def _inversions(found: dict[str, Any]) -> list[str]:
    """Say how large the inversions are."""
    return [
        f"  inversion   {one['name']}: {one['data']:,} data, {one['unknowns']:,} "
        f"unknowns, up to {one['bytes'] / 1e9:.2g} GB"
        for one in found.get("inversions", [])
    ]


def _reuse(found: dict[str, Any]) -> list[str]:
    """Say what is stored already."""
    reuse = found.get("reuse") or {}
    if reuse.get("sources"):
        return [f"  reuse       sources and model of campaign {reuse['sources']}"]
    if reuse.get("model"):
        return [f"  reuse       the model of campaign {reuse['model']}"]
    return []


def _warnings(found: dict[str, Any]) -> list[str]:
    return [
        f"  warning     {w['path']} {w['message']} ({w['hint']})"
        for w in found.get("warnings", [])
    ]


def _runs(found: dict[str, Any]) -> list[str]:
    """Say how many runs each way to solve takes, where there are several."""
    runs = found.get("runs") or {}
    each = ", ".join(f"{count:,} of {way}" for way, count in runs.items())
    return [f"  runs        {each}: {found['way']} are taken"] if runs else []


def _mesh(size: dict[str, float], accuracy: float | None) -> str:
    """Say what edges the mesh has, and that they may become shorter."""
    text = f"edges of {size['fault']:.3g} km on faults, {size['far']:.3g} km far away"
    text += f", growth {size['growth']:.2g}"
    if size.get("ends", 1.0) < 1.0:
        text += f", {size['ends']:g} times those where faults end at the ground"
    if accuracy is None:
        return text
    return (
        f"{text}: the first one for {accuracy:g} %, a later one may be 16 times larger"
    )


def _failure(found: dict[str, Any]) -> str:
    """Say why a mesh that was tried cannot be made; empty where it can."""
    trial = found.get("trial") or {}
    if "failed" not in trial:
        return ""
    # a small mesh is made as it is
    coarser = trial["coarser"]
    which = "the mesh" if coarser < 1.05 else f"a mesh {coarser:.1f} times coarser"
    return f"{which} could not be made: {trial['failed']}"


def _trial(found: dict[str, Any]) -> str:
    trial = found.get("trial")
    if not trial or "failed" in trial:
        return ""
    return (
        f", counted by a mesh {trial['coarser']:.1f} times coarser with "
        f"{trial['n_elements']:,}"
    )


def _time(found: dict[str, Any]) -> list[str]:
    from afterslip.cli.explain import remaining
    from afterslip.units import several

    time, cost = found["time"], found.get("cost") or {}
    group = remaining(time["group"])
    if time["low"] != time["high"]:
        group = f"{group} ({time['low']:.3g} to {time['high']:.3g} s)"
    money = f", {cost['amount']:.2g} {cost['currency']}" if cost else ""
    return [
        f"  time        {remaining(time['total'])} on {several(time['slots'], 'slot')};"
        f" a group {group}, by {several(time['campaigns'], 'campaign')} solved here",
        f"  cost        {remaining(time['worker'])} of workers{money}",
    ]
