"""Tables of the cost of model calls, and of the windows, batches and scans of extraction."""

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
        sa.Column("batch_id", sa.Text, comment="The batch that has it now, or had it when it was answered"),
        sa.Column("line", sa.Integer, comment="Its line there"),
        sa.Column(
            "is_online",
            sa.Boolean,
            nullable=False,
            server_default=sa.false(),
            comment="Asked for by itself, whatever the settings say: no batch has come to it",
        ),
        sa.Column("is_answered", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "user_id", "conversation", "from_seq"),
    )
    op.create_index(
        "windows_of_batch", "windows", ["batch_id", "line"], postgresql_where=sa.text("batch_id IS NOT NULL")
    )
    waits = sa.text("NOT is_answered AND batch_id IS NULL")
    op.create_index("windows_due", "windows", ["tenant", "is_online", "due_at"], postgresql_where=waits)
    op.create_index(
        "windows_of_user",
        "windows",
        ["tenant", "user_id", "conversation", "from_seq"],
        postgresql_where=waits,
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
        sa.Column(
            "changed_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="Since when it is in its state; of an intended one, when the provider was last asked",
        ),
        sa.Column(
            "deadline_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="What is not done then is asked at once",
        ),
        sa.Column("error", sa.Text),
    )
    op.create_index(
        "batches_open",
        "batches",
        ["created_at"],
        postgresql_where=sa.text("state IN ('claimed', 'intended', 'submitted')"),
    )
    op.create_table(
        "rounds",
        sa.Column("tenant", sa.Text),
        sa.Column(
            "begun_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When its users were last gone through",
        ),
        sa.Column("reached", sa.Text, comment="The user whom the round has come to; null: it is over"),
        sa.PrimaryKeyConstraint("tenant"),
    )
    op.create_index(
        "memory_events_of_batch",
        "memory_events",
        ["item"],
        postgresql_where=sa.text(
            "event IN ('batch.intended', 'batch.submitted', 'batch.completed', 'batch.failed')"
        ),
    )
