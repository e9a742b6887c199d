"""Removal of PostgreSQL's statistics on columns with content, because they keep values of deleted rows."""

from alembic import op

revision = "0009"
down_revision = "0008"

CONTENT = {
    "messages": {
        "content": "text", "name": "text", "task_id": "text", "tool_calls": "jsonb", "metadata": "jsonb"
    },
    "profile_sets": {"fields": "jsonb"},
    "memory_events": {"body": "jsonb"},
    "batches": {"error": "text"},
}  # fmt: skip


def upgrade() -> None:
    for table, columns in CONTENT.items():
        # The type stays the same: setting it again removes the existing statistics.
        changes = (
            change
            for name, type_ in columns.items()
            for change in (f"ALTER COLUMN {name} TYPE {type_}", f"ALTER COLUMN {name} SET STATISTICS 0")
        )
        op.execute(f"ALTER TABLE {table} {', '.join(changes)}")
