"""Table of erased users, with the log position below which everything is removed."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "erasures",
        sa.Column("tenant", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False, comment="What lies below it in the log is gone"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="When the log took it"),
        sa.Column(
            "is_settled",
            sa.Boolean,
            nullable=False,
            server_default=sa.false(),
            comment="Log, dead letters and triggers are purged too",
        ),
        sa.PrimaryKeyConstraint("tenant", "user_id"),
    )
    op.create_index("erasures_newest", "erasures", ["seq"])
