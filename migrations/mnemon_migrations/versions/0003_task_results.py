"""Index of messages by task, to find the tool results of a task."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_index(
        "messages_of_task",
        "messages",
        ["tenant", "user_id", "task_id", "seq"],
        postgresql_where=sa.text("task_id IS NOT NULL"),
    )
