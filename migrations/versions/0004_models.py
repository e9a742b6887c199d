"""What models cost, and what extraction has in hand."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "model_calls",
        sa.Column("tenant", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("event_id", sa.Text),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="When the log took it"),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("in_batch", sa.Boolean, nullable=False),
        sa.Column("input_tokens", sa.BigInteger, nullable=False, comment="Cached ones included"),
        sa.Column("cached_tokens", sa.BigInteger, nullable=False),
        sa.Column("output_tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Double, comment="Null: the model had no price"),
        sa.PrimaryKeyConstraint("tenant", "user_id", "event_id"),
    )
    op.create_index("model_calls_spending", "model_calls", ["tenant", "at"])
    op.create_table(
        "windows",
        sa.Column("tenant", sa.Text),
        sa.Column("user_id", sa.Text),
        sa.Column("conversation", sa.Text),
        sa.Column("from_seq", sa.BigInteger),
        sa.Column("to_seq", sa.BigInteger, nullable=False),
        sa.Column("cut_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False, comment="Not tried again before"),
        sa.Column("attempts", sa.Integer, nullable=False, comment="That failed"),
        sa.Column("batch_id", sa.Text, comment="The batch that has it now"),
        sa.Column("line", sa.Integer, comment="Its line there"),
        sa.Column("is_answered", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "user_id", "conversation", "from_seq"),
    )
    op.create_index(
        "windows_of_batch", "windows", ["batch_id", "line"], postgresql_where=sa.text("batch_id IS NOT NULL")
    )
    op.create_index(
        "windows_due",
        "windows",
        ["due_at"],
        postgresql_where=sa.text("NOT is_answered AND batch_id IS NULL"),
    )
    op.create_table(
        "batches",
        sa.Column("batch_id", sa.Text, primary_key=True),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False, comment="claimed, intended, submitted, completed or failed"),
        sa.Column("provider_batch_id", sa.Text),
        sa.Column("lines", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error", sa.Text),
    )
    op.create_index(
        "batches_open",
        "batches",
        ["created_at"],
        postgresql_where=sa.text("state IN ('claimed', 'intended', 'submitted')"),
    )
