"""The options by which a verb finds its server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from afterslip.client import Client

DEFAULT = "http://127.0.0.1:8000"

Server = Annotated[
    str,
    typer.Option("--server", envvar="AFTERSLIP_SERVER", help="Address of the server."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="AFTERSLIP_TOKEN",
        show_envvar=True,
        help="Token, where the server asks for one; @FILE reads it from a file.",
    ),
]
Which = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN", help="The campaign's id, its beginning, or its name."
    ),
]
AsTsv = Annotated[
    bool, typer.Option("--tsv", help="Print columns between tabs, for programs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def connect(server: str, token: str | None) -> Client:
    """Return a client; nothing is sent yet."""
    from afterslip.client import Client

    # somebody waits at the terminal: give up sooner than a program would
    return Client(server, token, tries=4)
