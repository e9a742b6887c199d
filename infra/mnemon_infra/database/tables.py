"""Tables of one generation, in a schema of its own that search_path selects.

In the projections, an event is one row, keyed by its id. If an event has several copies, the lowest log
position counts. Two kinds of events differ: `erasures` has one row for each user, with the highest position
of the user's erasures, and an erased conversation also has rows in `starts`. Readers derive the current
conversation, the content below a watermark and the user's data from these rows. So rows may be written in
any order, by any number of writers, any number of times.

`WORK_TABLES` are not projections: they contain the current state of windows, batches and scans.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TextClause,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE, JSONB

metadata = MetaData(
    naming_convention={"pk": "%(table_name)s_key", "ix": "%(table_name)s_%(column_0_N_name)s"}
)

OF_BATCHES = "event IN ('batch.intended', 'batch.submitted', 'batch.completed', 'batch.failed')"
"""Condition for events of batches, with the exact text of the index: PostgreSQL uses the index only then."""

DIED = "event = 'window.answered' AND body ->> 'outcome' = 'dead'"
"""Condition for events of windows that were given up, with the text of the index, as for `OF_BATCHES`."""

KEY = ("tenant", "user_id", "event_id")
"""Columns that identify an event."""


def _define_event_table(name: str, *parts: Column[Any] | Index, key: Sequence[str] = KEY) -> Table:
    """Define a table with a row for each event."""
    return Table(
        name,
        metadata,
        Column("tenant", Text),
        Column("user_id", Text),
        Column("event_id", Text),
        Column("seq", BigInteger, nullable=False),
        *parts,
        PrimaryKeyConstraint(*key),
    )


def _define_time_column(name: str, comment: str | None = None) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=False, comment=comment)


def _define_flag_column(name: str, comment: str) -> Column[Any]:
    return Column(name, Boolean, nullable=False, server_default=false(), comment=comment)


def _define_index(name: str, *columns: str | TextClause, where: str) -> Index:
    return Index(name, *columns, postgresql_where=text(where))


messages = _define_event_table(
    "messages",
    Column(
        "conversation",
        Text,
        comment="Conversation in the subject; null: the conversation that was current at seq",
    ),
    Column(
        "role",
        Text,
        comment="Null once the content is removed; the row remains, so that the event stays known",
    ),
    Column("content", Text),
    Column("name", Text),
    Column("task_id", Text),
    Column("tool_calls", JSONB),
    Column("metadata", JSONB),
    _define_time_column("sent_at"),
    Index("messages_reading", "tenant", "user_id", "conversation", "seq"),
    _define_index("messages_of_task", "tenant", "user_id", "task_id", "seq", where="task_id IS NOT NULL"),
)

starts = _define_event_table(
    "starts",
    Column("conversation", Text, nullable=False),
    Column("discard_previous", Boolean, nullable=False),
)

clears = _define_event_table(
    "clears",
    Column(
        "conversation",
        Text,
        comment="Conversation in the subject; null: the conversation that was current at seq",
    ),
)

profile_sets = _define_event_table("profile_sets", Column("fields", JSONB, nullable=False))

memory_events = _define_event_table(
    "memory_events",
    _define_time_column(
        "at", "Time of the event: the time at which the log stored it, or an imported event's own"
    ),
    Column("event", Text, nullable=False, comment="Name of the event, such as fact.saved"),
    Column("item", Text, comment="Id of the fact, summary, task, document or batch"),
    Column("proposal_id", Text, comment="Event id of the proposal that the event decides"),
    Column("conversation", Text, comment="Conversation of a summary or of an answered window"),
    Column("body", JSONB, comment="Null once the content is removed; the row remains"),
    Index("memory_events_reading", "tenant", "user_id", "event", "item", "seq"),
    _define_index(
        "memory_events_covering",
        *("tenant", "user_id", "conversation", "event", text("((body ->> 'to_seq')::bigint)")),
        where="conversation IS NOT NULL AND body IS NOT NULL",
    ),
    _define_index("memory_events_of_batch", "item", where=OF_BATCHES),
    _define_index("memory_events_died", "at", where=DIED),
    # The id comes first: without statistics PostgreSQL would read all rows of a user to find one item.
    key=KEY[::-1],
)

model_calls = _define_event_table(
    "model_calls",
    _define_time_column("at", "Time at which the log stored the event"),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("in_batch", Boolean, nullable=False),
    Column(
        "input_tokens", BigInteger, nullable=False, comment="Number of input tokens, cached ones included"
    ),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("usd", Double, comment="Cost in US dollars; null: the model had no price"),
    Index("model_calls_spending", "tenant", "at"),
)

erasures = Table(
    "erasures",
    metadata,
    Column("tenant", Text),
    Column("user_id", Text),
    Column(
        "seq",
        BigInteger,
        nullable=False,
        comment="Log position below which all events of the user are removed",
    ),
    _define_time_column("at", "Time at which the log stored the event"),
    _define_flag_column("is_settled", "True once log, dead letters and triggers are purged too"),
    PrimaryKeyConstraint("tenant", "user_id"),
    Index("erasures_newest", "seq"),
)
"""Users who were erased. The highest position counts, whatever the order of writing."""

conversation_erasures = _define_event_table(
    "conversation_erasures",
    Column(
        "up_to",
        BigInteger,
        nullable=False,
        comment="Log position below which the content of the conversation is removed",
    ),
    _define_time_column("at", "Time at which the log stored the event"),
    Column("conversation", Text, nullable=False),
    Column(
        "spans",
        INT8MULTIRANGE,
        nullable=False,
        comment="Ranges of log positions in which the conversation was the current one",
    ),
    Column(
        "discarded",
        BigInteger,
        comment="Log position of the conversation's last start that discarded earlier messages",
    ),
    Column(
        "derived",
        ARRAY(BigInteger),
        nullable=False,
        comment="Log positions of facts and proposals that were derived from the conversation alone",
    ),
    _define_flag_column("is_settled", "True once log, dead letters and triggers are purged too"),
    Index("conversation_erasures_newest", "up_to"),
)
"""Conversations that were erased. For each span of such a row, the table `starts` has a row too."""

# The tables below are not projections: they contain the work in progress of `extract`. If they are lost,
# `extract` recovers batches and answered windows from the rows of their events, and cuts other windows again.

WAITS = "NOT is_answered AND batch_id IS NULL"
"""Matches a window that has no answer and belongs to no batch."""

windows = Table(
    "windows",
    metadata,
    Column("tenant", Text),
    Column("user_id", Text),
    Column("conversation", Text),
    Column("from_seq", BigInteger),
    Column("to_seq", BigInteger, nullable=False),
    _define_time_column("cut_at"),
    _define_time_column("due_at", "Earliest time of the next attempt"),
    Column("attempts", Integer, nullable=False, comment="Number of attempts that have failed"),
    Column("batch_id", Text, comment="Batch that contains the window, or contained it when it was answered"),
    Column("line", Integer, comment="Line number of the window in the batch, from 0"),
    _define_flag_column("is_online", "True: the window gets an online request, whatever the settings say"),
    Column("is_answered", Boolean, nullable=False),
    PrimaryKeyConstraint("tenant", "user_id", "conversation", "from_seq"),
    _define_index("windows_of_batch", "batch_id", "line", where="batch_id IS NOT NULL"),
    _define_index("windows_due", "tenant", "is_online", "due_at", where=WAITS),
    _define_index("windows_of_user", "tenant", "user_id", "conversation", "from_seq", where=WAITS),
)

IS_OPEN = "state IN ('claimed', 'intended', 'submitted')"
"""Matches a batch that has neither completed nor failed."""

batches = Table(
    "batches",
    metadata,
    Column("batch_id", Text, primary_key=True),
    Column("provider", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("state", Text, nullable=False, comment="claimed, intended, submitted, completed or failed"),
    Column("provider_batch_id", Text),
    Column("lines", Integer, nullable=False),
    _define_time_column("created_at"),
    _define_time_column(
        "changed_at",
        "Time of the last change of state; of an intended batch, of the last request to the provider",
    ),
    _define_time_column("deadline_at", "Time from which unfinished windows are requested online"),
    Column("error", Text),
    _define_index("batches_open", "created_at", where=IS_OPEN),
)

rounds = Table(
    "rounds",
    metadata,
    Column("tenant", Text),
    _define_time_column("begun_at", "Time at which the last scan of the tenant's users began"),
    Column("reached", Text, comment="Last user that the scan has handled; null: the scan is complete"),
    PrimaryKeyConstraint("tenant"),
)

WORK_TABLES: Final = (windows, batches, rounds)
"""Tables that are not projections; a swap moves these tables to the new live generation."""
