"""Priority, sharing and reuse of unit sources.

Revision 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

QUEUED_CAMPAIGN = sa.text("wake_at IS NOT NULL")
CANCELLING_CAMPAIGN = sa.text("cancelling AND state <> 'cancelled'")
LIVE_JOB = sa.text("state IN ('queued', 'running', 'stored')")

# what waits in campaigns of the older schema is found again
WAKE = """
UPDATE campaigns SET wake_at = (
    SELECT min(jobs.not_before) FROM jobs
    WHERE jobs.campaign_id = campaigns.id AND jobs.state = 'waiting'
      AND (jobs.kind = 'inversion') = (campaigns.finished_at IS NOT NULL)
) WHERE NOT paused AND NOT cancelling
"""


def upgrade() -> None:
    zero = sa.text("0")
    op.add_column(
        "campaigns",
        sa.Column("priority", sa.Integer(), nullable=False, server_default=zero),
    )
    op.add_column(
        "campaigns",
        sa.Column("turn", sa.BigInteger(), nullable=False, server_default=zero),
    )
    op.add_column("campaigns", sa.Column("wake_at", sa.DateTime(timezone=True)))
    op.add_column("campaigns", sa.Column("recent", sa.JSON()))
    op.drop_index(op.f("ix_campaigns_served_at"), "campaigns")
    op.drop_column("campaigns", "served_at")
    op.execute(WAKE)
    op.create_index(
        op.f("ix_campaigns_owner_priority_turn"),
        "campaigns",
        ["owner", "priority", "turn"],
        postgresql_where=QUEUED_CAMPAIGN,
        sqlite_where=QUEUED_CAMPAIGN,
    )
    op.create_index(
        op.f("ix_campaigns_cancelling"),
        "campaigns",
        ["cancelling"],
        postgresql_where=CANCELLING_CAMPAIGN,
        sqlite_where=CANCELLING_CAMPAIGN,
    )
    op.drop_index(op.f("ix_jobs_campaign_id_state"), "jobs")
    op.drop_index(op.f("ix_jobs_state_not_before"), "jobs")
    op.create_index(
        op.f("ix_jobs_campaign_id_kind_state_not_before_ordinal"),
        "jobs",
        ["campaign_id", "kind", "state", "not_before", "ordinal"],
    )
    op.create_index(
        op.f("ix_jobs_state_campaign_id"),
        "jobs",
        ["state", "campaign_id"],
        postgresql_where=LIVE_JOB,
        sqlite_where=LIVE_JOB,
    )
    op.add_column("leases", sa.Column("facts", sa.JSON()))
    op.create_table(
        "shares",
        sa.Column("owner", sa.String(length=200), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_shares")),
    )
    op.execute(
        "INSERT INTO shares (owner, turn) "
        "SELECT DISTINCT coalesce(owner, ''), 0 FROM campaigns"
    )
    op.create_table(
        "sources",
        sa.Column("campaign_id", sa.String(length=40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("model", sa.String(length=80), nullable=False),
        sa.Column("slip", sa.String(length=80), nullable=False),
        sa.Column("solver", sa.String(length=80), nullable=False),
        sa.Column("until", sa.Float(), nullable=False),
        sa.Column("tolerance", sa.Float(), nullable=False),
        sa.Column("time_tolerance", sa.Float(), nullable=False),
        sa.Column("token", sa.String(length=40), nullable=True),
        sa.Column("origin", sa.String(length=40), nullable=True),
        sa.Column("origin_position", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"],
            ["campaigns.id"],
            name=op.f("fk_sources_campaign_id_campaigns"),
        ),
        sa.PrimaryKeyConstraint("campaign_id", "position", name=op.f("pk_sources")),
    )
    for column in ("key", "model", "slip"):
        op.create_index(op.f(f"ix_sources_{column}"), "sources", [column])


def downgrade() -> None:
    op.drop_table("sources")
    op.drop_table("shares")
    op.drop_column("leases", "facts")
    op.drop_index(op.f("ix_jobs_state_campaign_id"), "jobs")
    op.drop_index(op.f("ix_jobs_campaign_id_kind_state_not_before_ordinal"), "jobs")
    op.create_index(op.f("ix_jobs_campaign_id_state"), "jobs", ["campaign_id", "state"])
    op.create_index(op.f("ix_jobs_state_not_before"), "jobs", ["state", "not_before"])
    op.drop_index(op.f("ix_campaigns_cancelling"), "campaigns")
    op.drop_index(op.f("ix_campaigns_owner_priority_turn"), "campaigns")
    op.add_column("campaigns", sa.Column("served_at", sa.DateTime(timezone=True)))
    op.create_index(op.f("ix_campaigns_served_at"), "campaigns", ["served_at"])
    for column in ("recent", "wake_at", "turn", "priority"):
        op.drop_column("campaigns", column)
