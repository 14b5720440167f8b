"""``afterslip token create``, ``list``, ``revoke``: on a server, or on its database.

The first token of an administrator can only come from the database: nobody could be
asked for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from afterslip.cli.rows import print_rows, when
from afterslip.cli.server import DEFAULT, AsJson, AsTsv, Server, Token, connect
from afterslip_service.errors import ServiceError
from afterslip_service.umask import private_files

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Make, list and revoke tokens."
)

Database = Annotated[
    str | None,
    typer.Option(
        help="On this database (SQLAlchemy URL or SQLite file), without a server."
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for, e.g. laptop.")],
    user: Annotated[str, typer.Option(help="Whom campaigns made with it belong to.")],
    role: Annotated[
        str | None,
        typer.Option(help="viewer, submitter (the usual one), operator or admin."),
    ] = None,
    campaign: Annotated[
        str | None,
        typer.Option(help="A link that reads this campaign alone: its id or name."),
    ] = None,
    days: Annotated[
        int, typer.Option(min=0, max=3660, help="Until it expires; 0: never.")
    ] = 90,
    out: Annotated[
        Path | None, typer.Option(help="Write it to a file that only you may read.")
    ] = None,
    database: Database = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """Make a token; its secret is printed this once and stored nowhere."""
    usual = "submitter" if campaign is None else "viewer"
    body = {"name": name, "user": user, "role": role or usual, "days": days or None}
    if campaign is not None:
        if database is None:
            with connect(server, token) as client:
                campaign = client.campaign(campaign).id
        body["campaign"] = campaign
    with _desk(database, server, token) as desk:
        made = desk.create(body)
    end = f"expires {when(made['expires_at'])}" if made["expires_at"] else "for good"
    typer.echo(f"{made['id']}: {user} as {role or usual}, {end}", err=True)
    shown = made["token"]
    if campaign is not None:
        # behind the #, which browsers send to nobody
        shown = f"{server.rstrip('/')}/#/shared/{campaign}/{shown}"
    if out is None:
        typer.echo(shown)
        return
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(shown + "\n")


@app.command("list")
def list_tokens(
    user: Annotated[str | None, typer.Option(help="Only of this user.")] = None,
    database: Database = None,
    server: Server = DEFAULT,
    token: Token = None,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """List your tokens, newest first; an administrator sees everybody's."""
    with _desk(database, server, token) as desk:
        found = desk.list(user)
    rows = [
        (
            item["id"],
            item["name"],
            item["user"],
            item["role"],
            when(item["expires_at"]) or "never",
            when(item["last_used_at"]) or "–",
            item.get("campaign") or "all",
            "revoked" if item["revoked_at"] else "",
        )
        for item in found
    ]
    heads = ("id", "name", "user", "role", "expires", "last used", "reads", "state")
    print_rows(heads, rows, found, as_json=as_json, as_tsv=as_tsv, empty="no tokens")


@app.command()
def revoke(
    identity: Annotated[str, typer.Argument(metavar="ID", help="As list tells it.")],
    database: Database = None,
    server: Server = DEFAULT,
    token: Token = None,
) -> None:
    """End a token at once, with the page's sessions that were opened by it."""
    with _desk(database, server, token) as desk:
        desk.revoke(identity)
    typer.echo(f"{identity}: revoked")


class _OnServer:
    """Tokens of a server."""

    def __init__(self, server: str, token: str | None) -> None:
        from afterslip.client.credentials import resolve
        from afterslip.client.transport import Transport

        self._transport = Transport(server, resolve(token), tries=4)
        self.close = self._transport.close

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = self._transport.post("/v1/tokens", body)
        return made

    def list(self, user: str | None) -> list[dict[str, Any]]:
        from afterslip.client.campaign import pages

        return [*pages(self._transport, "/v1/tokens", user=user)]

    def revoke(self, identity: str) -> None:
        from urllib.parse import quote

        self._transport.request("DELETE", f"/v1/tokens/{quote(identity, safe='')}")


class _OnDatabase:
    """Tokens of a database; any user who can write it needs none."""

    def __init__(self, url: str) -> None:
        from afterslip_service.db import migrate
        from afterslip_service.db.session import Database

        self._database = Database(url)
        self.close = self._database.close
        migrate.upgrade(self._database)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        from afterslip_service.db import campaigns, tokens
        from afterslip_service.routes.tokens import TokenRequest, TokenResponse, expiry

        try:
            asked = TokenRequest.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ServiceError(f"{where}: {first['msg']}") from None
        with self._database.write() as connection:
            if asked.campaign is not None:
                campaigns.get(connection, asked.campaign)
            made, secret = tokens.create(
                connection,
                name=asked.name,
                user=asked.user,
                role=asked.role,
                expires_at=expiry(asked.days),
                campaign=asked.campaign,
            )
        return {**TokenResponse.of(made).model_dump(mode="json"), "token": secret}

    def list(self, user: str | None) -> list[dict[str, Any]]:
        from afterslip_service.db import tokens
        from afterslip_service.routes.tokens import TokenResponse

        with self._database.read() as connection:
            found = tokens.page(connection, before=None, limit=None, user=user)
        return [TokenResponse.of(item).model_dump(mode="json") for item in found]

    def revoke(self, identity: str) -> None:
        from afterslip_service.db import tokens

        with self._database.write() as connection:
            tokens.revoke(connection, tokens.get(connection, identity).id)


@contextmanager
def _desk(
    database: str | None, server: str, token: str | None
) -> Iterator[_OnServer | _OnDatabase]:
    # the first token makes the database
    with private_files():
        desk = _OnServer(server, token) if database is None else _OnDatabase(database)
    try:
        yield desk
    finally:
        desk.close()
