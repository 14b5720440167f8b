"""``afterslip reproduce``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from afterslip.cli.results import Result, opened, source
from afterslip.cli.server import DEFAULT, AsJson, Server, Token, connect


def reproduce(
    result: Result,
    tolerance: Annotated[
        float, typer.Option(min=0.0, help="Largest relative change that passes.")
    ] = 1e-3,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new result and report.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Invert again from a result's own record, and compare: 0 the same, 1 not."""
    from afterslip.reproduction import compare, record_of
    from afterslip.result import facts

    stored = opened(source(result))
    campaign, request = record_of(stored)
    with connect(server, token) as client:
        inversion = client.campaign(campaign).ask(request).wait()
        again = inversion.result
        if out is not None:
            inversion.save(out)
    found = list(compare(stored, again))
    differing = [item.name for item in found if not item.within(tolerance)]
    versions = [facts(each, "versions") for each in (stored, again)]
    if as_json:
        answer = {
            "inversion": inversion.id,
            "same": not differing,
            "change": {item.name: item.change for item in found},
            "versions": versions,
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        for item in found:
            word = "same" if item.within(tolerance) else "DIFFERS"
            typer.echo(f"{item.name:24s} {item.change:9.2e} {word}")
        if versions[0] != versions[1]:
            typer.echo("made by other versions of the software: see versions")
        typer.echo("reproduced" if not differing else "not reproduced")
    if differing:
        raise typer.Exit(1)
