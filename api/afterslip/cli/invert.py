"""``afterslip invert``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from afterslip.cli.server import DEFAULT, AsJson, Server, Token, Which, connect
from afterslip.cli.watch import found
from afterslip.errors import one_problem

if TYPE_CHECKING:
    from afterslip.client.campaign import CampaignHandle
    from afterslip.client.inversion import Inversion


def invert(
    which: Which,
    dataset: Annotated[
        list[str],
        typer.Option(
            help="Name of a data set, or NAME=FILE.csv to send one; may be repeated."
        ),
    ],
    name: Annotated[str, typer.Option(help="What to call it.")] = "inversion",
    smoothness: Annotated[str, typer.Option(help="λ: auto or a number.")] = "auto",
    sparsity: Annotated[str, typer.Option(help="μ: auto or a number.")] = "0",
    choice: Annotated[
        Literal["evidence", "cross_validation", "one_standard_error"],
        typer.Option(help="What chooses the smoothness."),
    ] = "evidence",
    folds: Annotated[int, typer.Option(min=2, help="Of the cross-validation.")] = 5,
    sign: Annotated[
        list[str] | None,
        typer.Option(help="Such as dip=positive; may be repeated."),
    ] = None,
    model_error: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID[,ID]",
            help="Campaign in another earth, with its alternatives; may be repeated.",
        ),
    ] = None,
    epoch: Annotated[str, typer.Option(help="Of data that are sent.")] = "0 d",
    sigma: Annotated[
        str | None,
        typer.Option(
            metavar="H,V", help="Errors in m of data that are sent without any."
        ),
    ] = None,
    series: Annotated[
        Literal["displacement", "velocity"] | None,
        typer.Option(help="Of data that are sent: ground motion with time_s."),
    ] = None,
    lowpass: Annotated[
        float | None, typer.Option(help="Of such series, Hz.", min=0)
    ] = None,
    windows: Annotated[
        str | None,
        typer.Option(metavar="N,TIME", help="Of a rupture, and their spacing: 4,2s."),
    ] = None,
    rupture_speed: Annotated[
        float | None, typer.Option(help="Of the front, km/s.")
    ] = None,
    hypocentre: Annotated[
        str | None,
        typer.Option(metavar="X,Y,DEPTH", help="In km; or LON,LAT,DEPTH."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for result and report.")
    ] = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Estimate slip from data sets with a campaign's Green's functions."""
    weights = [_weight("--smoothness", smoothness), _weight("--sparsity", sparsity)]
    signs = dict(_pair("--sign", item) for item in sign or [])
    errors = _sigma(sigma)
    motion = None if series is None else {"quantity": series, "lowpass": lowpass}
    with connect(server, token) as client:
        campaign = client.campaign(which)
        named = [_named(item, campaign) for item in dataset]
        for title, file in named:
            if file is not None:
                client.add_dataset(
                    title, file, epoch=epoch, sigma=errors, series=motion
                )
        frame = campaign.spec["model"].get("frame", {})
        rupture = _windows(windows, rupture_speed, hypocentre, frame)
        inversion = campaign.invert(
            [title for title, _ in named],
            name=name,
            smoothness=weights[0],
            sparsity=weights[1],
            choice=choice,
            folds=folds,
            sign=signs,
            earths=[item.split(",") for item in model_error or []],
            windows=rupture,
        )
        if out is not None:
            inversion.save(out)
        if as_json:
            typer.echo(json.dumps(inversion.data, indent=2))
            return
        _say(inversion)


def _say(inversion: Inversion) -> None:
    typer.echo(
        f"{inversion.name} {inversion.id}: {found(inversion)}, score "
        f"{inversion.score:.3g}"
    )
    for sentence in inversion.warnings:
        typer.echo(f"doubt: {sentence}")


def _named(text: str, campaign: CampaignHandle) -> tuple[str, str | None]:
    """Return the name of a data set, and the file to send where one is given."""
    if "=" not in text:
        return text, None
    title, file = _pair("--dataset", text)
    if any(own["name"] == title for own in campaign.spec.get("datasets") or []):
        # an inversion that names it could mean either
        said = f"{title} is the campaign's own data set"
        hint = "give the new data another name: --dataset NAME=FILE"
        raise one_problem("--dataset", text, said, hint)
    return title, file


def _weight(option: str, text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise one_problem(option, text, "must be auto or a number") from None


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise one_problem(option, text, "is not of the form NAME=VALUE")
    return name.strip(), value.strip()


def _sigma(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        horizontal, vertical = (float(part) for part in text.split(","))
    except ValueError:
        raise one_problem("--sigma", text, "must be two numbers, H,V in m") from None
    return {"horizontal": horizontal, "vertical": vertical}


def _windows(
    text: str | None,
    speed: float | None,
    hypocentre: str | None,
    frame: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Return the windows that three options ask for; None where none does."""
    if text is None and speed is None and hypocentre is None:
        return None
    if text is None or speed is None or hypocentre is None:
        hint = "give --windows, --rupture-speed and --hypocentre"
        raise one_problem("--windows", text, "needs all three options", hint)
    count, _, spacing = text.partition(",")
    places = [part.strip() for part in hypocentre.split(",")]
    if len(places) != 3:
        hint = "such as 4.6,-11.3,8.7"
        raise one_problem("--hypocentre", hypocentre, "must be three numbers", hint)
    axes = ("x", "y") if frame.get("kind") == "local" else ("lon", "lat")
    asked: dict[str, Any] = {"count": count.strip(), "rupture_speed": speed}
    if spacing.strip():
        asked["spacing"] = spacing.strip()
    return asked | {"hypocentre": dict(zip((*axes, "depth"), places, strict=True))}
