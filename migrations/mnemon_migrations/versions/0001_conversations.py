"""Tables of messages, of starts and clears of conversations, and of profiles."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None


def _event(*columns: sa.Column[Any]) -> tuple[sa.Column[Any], ...]:
    return (
        sa.Column("tenant", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, primary_key=True),
        sa.Column("event_id", sa.Text, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        *columns,
    )


def upgrade() -> None:
    op.create_table(
        "messages",
        *_event(
            sa.Column("conversation", sa.Text, comment="As the subject names it; null: the one current at seq"),
            sa.Column(
                "role",
                sa.Text,
                comment="Null once the content is gone: the row stays, so that the event stays known",
            ),
            sa.Column("content", sa.Text),
            sa.Column("name", sa.Text),
            sa.Column("task_id", sa.Text),
            sa.Column("tool_calls", JSONB),
            sa.Column("metadata", JSONB),
            sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        ),
    )
    op.create_index("messages_reading", "messages", ["tenant", "user_id", "conversation", "seq"])
    op.create_table(
        "starts",
        *_event(
            sa.Column("conversation", sa.Text, nullable=False),
            sa.Column("discard_previous", sa.Boolean, nullable=False),
        ),
    )
    op.create_table(
        "clears",
        *_event(
            sa.Column("conversation", sa.Text, comment="As the subject names it; null: the one current at seq")
        ),
    )
    op.create_table("profile_sets", *_event(sa.Column("fields", JSONB, nullable=False)))
