"""Index of windows that failed for good, by time."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_index(
        "memory_events_died",
        "memory_events",
        ["at"],
        postgresql_where=sa.text("event = 'window.answered' AND body ->> 'outcome' = 'dead'"),
    )
