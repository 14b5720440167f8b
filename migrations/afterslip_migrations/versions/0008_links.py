"""Tokens that read one campaign only.

Revision 0008, after 0007. On the way down these tokens go with their sessions: without
the column they would read every campaign.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

tokens = sa.table("tokens", sa.column("id"), sa.column("campaign_id"))
sessions = sa.table("sessions", sa.column("token_id"))


def upgrade() -> None:
    op.add_column("tokens", sa.Column("campaign_id", sa.String(40)))


def downgrade() -> None:
    links = sa.select(tokens.c.id).where(tokens.c.campaign_id.is_not(None))
    op.execute(sessions.delete().where(sessions.c.token_id.in_(links)))
    op.execute(tokens.delete().where(tokens.c.campaign_id.is_not(None)))
    op.drop_column("tokens", "campaign_id")
