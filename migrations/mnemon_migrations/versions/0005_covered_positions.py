"""Index of the positions up to which summaries and windows cover a conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index(
        "memory_events_covering",
        "memory_events",
        ["tenant", "user_id", "conversation", "event", sa.text("((body ->> 'to_seq')::bigint)")],
        postgresql_where=sa.text("conversation IS NOT NULL AND body IS NOT NULL"),
    )
