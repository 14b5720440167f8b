"""Tags of campaigns.

Revision 0007, after 0006. On the way down the tags are lost.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column("tags", sa.String(1000), nullable=False, server_default="")
    op.add_column("campaigns", column)


def downgrade() -> None:
    op.drop_column("campaigns", "tags")
