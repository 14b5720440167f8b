"""When a campaign was resumed.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("resumed_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("campaigns", "resumed_at")
