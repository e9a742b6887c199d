"""Table of memory events, such as those on facts, summaries, tasks and documents."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "memory_events",
        sa.Column("tenant", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("event_id", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="When the log took it"),
        sa.Column("event", sa.Text, nullable=False, comment="Such as fact.saved"),
        sa.Column("item", sa.Text, comment="The fact, summary, task or document"),
        sa.Column("proposal_id", sa.Text, comment="The event id of the proposal that it decides"),
        sa.Column("conversation", sa.Text, comment="Of a summary"),
        sa.Column("body", JSONB, comment="Null once the content is gone: the row stays"),
        # The id comes first: without statistics PostgreSQL would read all rows of a user to find one item.
        sa.PrimaryKeyConstraint("event_id", "user_id", "tenant"),
    )
    op.create_index("memory_events_reading", "memory_events", ["tenant", "user_id", "event", "item", "seq"])
