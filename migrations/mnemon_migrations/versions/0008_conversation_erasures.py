"""Table of erased conversations, with the log position below which their content is removed."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "conversation_erasures",
        sa.Column("tenant", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("event_id", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("up_to", sa.BigInteger, nullable=False, comment="What lies below it in the log is gone"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="When the log took it"),
        sa.Column("conversation", sa.Text, nullable=False),
        sa.Column("spans", INT8MULTIRANGE, nullable=False, comment="Where it was the current one"),
        sa.Column("discarded", sa.BigInteger, comment="Its last start that discarded what was said before"),
        sa.Column(
            "derived",
            sa.ARRAY(sa.BigInteger),
            nullable=False,
            comment="Where what was drawn from it alone was",
        ),
        sa.Column(
            "is_settled",
            sa.Boolean,
            nullable=False,
            server_default=sa.false(),
            comment="Log, dead letters and triggers are purged too",
        ),
        sa.PrimaryKeyConstraint("tenant", "user_id", "event_id"),
    )
    op.create_index("conversation_erasures_newest", "conversation_erasures", ["up_to"])
