"""Tables of the service; migrations are made from them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, ForeignKey, Index, Table, UniqueConstraint
from sqlalchemy.types import TypeDecorator

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = sa.MetaData(naming_convention=NAMING)


class Moment(TypeDecorator[datetime]):
    """A time in UTC; SQLite keeps none of the zone, so it is put back on reading."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> Any:  # noqa: ARG002
        """Write in UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> Any:  # noqa: ARG002
        """Read as UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value


# SQLite gives increasing rowids only to INTEGER keys
Serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# conditions of partial indexes; a query that says the same uses them
QUEUED_CAMPAIGN = "wake_at IS NOT NULL"
CANCELLING_CAMPAIGN = "cancelling AND state <> 'cancelled'"
WAITING_DELIVERY = "state = 'waiting'"
LIVE_JOB = "state IN ('queued', 'running', 'stored')"

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("name", sa.String(200), nullable=False),
    # the user that asked for it; none where the service knew no users
    Column("owner", sa.String(200), index=True),
    Column("state", sa.String(20), nullable=False, index=True),
    Column("digest", sa.String(80), nullable=False, index=True),
    # as the user wrote it, and in the canonical form that workers read
    Column("spec", sa.JSON, nullable=False),
    Column("canonical", sa.JSON, nullable=False),
    # who can say what its spec, its store and its results mean
    Column("physics", sa.String(40), nullable=False, server_default="viscoelastic"),
    Column("model", sa.JSON),
    Column("n_sources", sa.Integer),
    Column("paused", sa.Boolean, nullable=False, default=False),
    Column("cancelling", sa.Boolean, nullable=False, default=False),
    Column("resumed_at", Moment),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("finished_at", Moment),
    Column("deleted_at", Moment),
    # fair sharing: higher priorities first, then who was served longest ago
    Column("priority", sa.Integer, nullable=False, default=0, server_default="0"),
    Column("turn", sa.BigInteger, nullable=False, default=0, server_default="0"),
    # ",a,b,": found by one comparison in either database
    Column("tags", sa.String(1000), nullable=False, default="", server_default=""),
    # when the next of its jobs may start; none where nothing of it may
    Column("wake_at", Moment),
    # how long the last accepted groups took, s
    Column("recent", sa.JSON),
    Column("error_class", sa.String(40)),
    Column("error_message", sa.Text),
    Index(
        None,
        "owner",
        "priority",
        "turn",
        postgresql_where=sa.text(QUEUED_CAMPAIGN),
        sqlite_where=sa.text(QUEUED_CAMPAIGN),
    ),
    Index(
        None,
        "cancelling",
        postgresql_where=sa.text(CANCELLING_CAMPAIGN),
        sqlite_where=sa.text(CANCELLING_CAMPAIGN),
    ),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("campaign_id", ForeignKey("campaigns.id"), nullable=False),
    Column("kind", sa.String(20), nullable=False),
    Column("ordinal", sa.Integer, nullable=False),
    Column("state", sa.String(20), nullable=False),
    Column("payload", sa.JSON, nullable=False),
    Column("attempts", sa.Integer, nullable=False, default=0),
    # the attempt that may report; every other receipt is refused
    Column("token", sa.String(40)),
    Column("failures", sa.JSON, nullable=False, default=dict),
    Column("not_before", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("error_class", sa.String(40)),
    Column("error_message", sa.Text),
    UniqueConstraint("campaign_id", "kind", "ordinal"),
    # a campaign's jobs of one kind and state, in the order in which they may start
    Index(None, "campaign_id", "kind", "state", "not_before", "ordinal"),
    Index(
        None,
        "state",
        "campaign_id",
        postgresql_where=sa.text(LIVE_JOB),
        sqlite_where=sa.text(LIVE_JOB),
    ),
)

attempts = Table(
    "attempts",
    metadata,
    Column("token", sa.String(40), primary_key=True),
    Column("job_id", ForeignKey("jobs.id"), nullable=False, index=True),
    Column("number", sa.Integer, nullable=False),
    Column("state", sa.String(20), nullable=False, index=True),
    Column("dispatcher", sa.String(80), nullable=False),
    Column("worker", sa.String(200)),
    Column("queued_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("seen_at", Moment),
    Column("finished_at", Moment),
    Column("error_class", sa.String(40)),
    Column("error_message", sa.Text),
    Column("stats", sa.JSON),
    Column("history", sa.JSON),
    Column("manifest", sa.JSON),
    Column("log", sa.Text),
)

inversions = Table(
    "inversions",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("campaign_id", ForeignKey("campaigns.id"), nullable=False, index=True),
    Column("job_id", ForeignKey("jobs.id"), nullable=False, unique=True),
    Column("name", sa.String(200), nullable=False),
    Column("owner", sa.String(200)),
    Column("request", sa.JSON, nullable=False),
    Column("summary", sa.JSON),
    Column("created_at", Moment, nullable=False),
)

datasets = Table(
    "datasets",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("name", sa.String(200), nullable=False, index=True),
    Column("owner", sa.String(200)),
    Column("file", sa.String(80), nullable=False),
    Column("content", sa.JSON, nullable=False),
    Column("n_observations", sa.Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
)

files = Table(
    "files",
    metadata,
    Column("ref", sa.String(80), primary_key=True),
    Column("size", sa.BigInteger, nullable=False),
    Column("name", sa.String(300)),
    Column("created_at", Moment, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    Column("time", Moment, nullable=False),
    # no foreign key: the record outlives what it tells about
    Column("campaign", sa.String(40)),
    Column("kind", sa.String(40), nullable=False),
    Column("data", sa.JSON, nullable=False),
    Index(None, "campaign", "id"),
    Index(None, "kind", "time"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("name", sa.String(40), primary_key=True),
    Column("holder", sa.String(80), nullable=False),
    Column("epoch", sa.BigInteger, nullable=False),
    Column("expires_at", Moment, nullable=False),
    # what the holder sees: slots, workers, trouble
    Column("facts", sa.JSON),
)

shares = Table(
    "shares",
    metadata,
    # a user, or nothing for campaigns that belong to nobody
    Column("owner", sa.String(200), primary_key=True),
    # number of the claim that served the user last
    Column("turn", sa.BigInteger, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("campaign_id", ForeignKey("campaigns.id"), primary_key=True),
    # place in the campaign's store
    Column("position", sa.Integer, primary_key=True),
    # digest of all that changes its numbers, and of the three parts of that
    Column("key", sa.String(80), nullable=False, index=True),
    Column("model", sa.String(80), nullable=False, index=True),
    Column("slip", sa.String(80), nullable=False, index=True),
    Column("solver", sa.String(80), nullable=False),
    # what it is good for, in terms of its campaign's physics: better serves as well
    Column("quality", sa.JSON, nullable=False, server_default="{}"),
    # the accepted attempt that holds it, none until there is one
    Column("token", sa.String(40)),
    # the campaign that it was taken from, and its place there
    Column("origin", sa.String(40)),
    Column("origin_position", sa.Integer),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("key", sa.String(200), primary_key=True),
    Column("route", sa.String(200), primary_key=True),
    Column("request", sa.String(80), nullable=False),
    Column("status", sa.Integer),
    Column("body", sa.JSON),
    Column("created_at", Moment, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("name", sa.String(200), nullable=False),
    Column("user", sa.String(200), nullable=False, index=True),
    Column("role", sa.String(20), nullable=False),
    # the only one that it reads; none: all
    Column("campaign_id", sa.String(40)),
    # SHA-256 of the secret, which is stored nowhere
    Column("hash", sa.String(64), nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment),
    Column("revoked_at", Moment),
    Column("last_used_at", Moment),
)

sessions = Table(
    "sessions",
    metadata,
    # SHA-256 of the cookie; a session is worth what its token is worth
    Column("hash", sa.String(64), primary_key=True),
    Column("token_id", ForeignKey("tokens.id"), nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
    Column("expires_at", Moment, nullable=False, index=True),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("url", sa.String(2000), nullable=False),
    # whose campaigns it reports; none where the service knew no users
    Column("owner", sa.String(200), index=True),
    Column("events", sa.JSON, nullable=False),
    # the only campaign that it reports, or none
    Column("campaign", sa.String(40)),
    # SHA-256 of the secret, which is stored nowhere
    Column("hash", sa.String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", sa.String(40), primary_key=True),
    Column("webhook_id", ForeignKey("webhooks.id"), nullable=False),
    Column("event", sa.String(40), nullable=False),
    Column("payload", sa.JSON, nullable=False),
    Column("state", sa.String(20), nullable=False),
    Column("attempts", sa.Integer, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("not_before", Moment, nullable=False),
    Column("sent_at", Moment),
    # of the last answer, or what went wrong without one
    Column("status", sa.Integer),
    Column("error", sa.Text),
    Index(None, "webhook_id", "id"),
    Index(
        None,
        "not_before",
        postgresql_where=sa.text(WAITING_DELIVERY),
        sqlite_where=sa.text(WAITING_DELIVERY),
    ),
)
