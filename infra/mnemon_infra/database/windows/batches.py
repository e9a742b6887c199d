"""Repository of batches, from the claim of their windows to their end."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, Literal

from sqlalchemy import bindparam, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.database.engine import Connection, Lookup, Statement, make_parameter, query
from mnemon_infra.database.tables import IS_OPEN, batches

BatchState = Literal["claimed", "intended", "submitted", "completed", "failed"]
"""State of a batch.

`claimed`: the submission has not begun. `intended`: the submission has begun, and the provider may have the
batch. `submitted`: the provider has it. `completed` and `failed`: the batch is over.
"""

STATES: Final[Mapping[str, tuple[BatchState, ...]]] = {
    "all": ("claimed", "intended", "submitted", "completed", "failed"),
    "open": ("claimed", "intended", "submitted"),
    "completed": ("completed",),
    "failed": ("failed",),
}
"""States of the batches that each word of a filter, such as `open`, selects."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch of requests to a language model, as the table `batches` has it.

    Attributes:
        batch_id: mnemon's id of the batch.
        model: the provider's name of the model.
        provider_batch_id: the provider's id; None until it is known.
        lines: number of lines of the batch; a line is one request.
        changed_at: the time of its last change of state; for an intended batch, of the last request to the
            provider.
        deadline_at: the time after which a running batch is cancelled, and its unanswered windows are
            requested online.
        error: the reason for its failure, or for a refused submission; None if there was neither.
    """

    batch_id: str
    provider: Provider
    model: str
    state: BatchState
    provider_batch_id: str | None
    lines: int
    created_at: datetime
    changed_at: datetime
    deadline_at: datetime
    error: str | None = None


_COLUMNS: Final = tuple(batches.c[field.name] for field in fields(StoredBatch))
_PURPOSE: Final = "extract"

_INSERT = Statement(
    insert(batches)
    .values({column.name: bindparam(column.name) for column in batches.c})
    .on_conflict_do_nothing()
)
_CHANGE = Statement(
    update(batches)
    .where(batches.c.batch_id == bindparam("of_batch"))
    .values(
        state=bindparam("into"),
        changed_at=bindparam("at"),
        lines=bindparam("number"),
        provider_batch_id=func.coalesce(make_parameter("named", str), batches.c.provider_batch_id),
        error=bindparam("for_what"),
    )
)
_OPEN = Lookup(select(batches.c.batch_id, batches.c.created_at).where(text(IS_OPEN)))
_NEWEST = Lookup(
    select(*_COLUMNS)
    .where(
        batches.c.created_at < make_parameter("before", datetime),
        batches.c.state == func.any(make_parameter("among", list[str])),
    )
    .order_by(batches.c.created_at.desc())
    .limit(make_parameter("most", int))
)
_ONE = Lookup(select(*_COLUMNS).where(batches.c.batch_id == make_parameter("of_batch", str)))


async def insert_batch(connection: Connection, batch: StoredBatch) -> None:
    """Insert a batch; an existing batch stays unchanged."""
    await _INSERT.execute_each(connection, [{**asdict(batch), "purpose": _PURPOSE}])


async def update_batch(
    connection: Connection,
    batch: StoredBatch,
    state: BatchState,
    at: datetime,
    *,
    provider_batch_id: str | None = None,
    error: str | None = None,
) -> None:
    """Record the new state of a batch, the time of the change, and the number of lines of `batch`.

    If `provider_batch_id` is None, the stored value stays; if `error` is None, a former error is removed.
    """
    changed: dict[str, Any] = {
        "of_batch": batch.batch_id,
        "into": state,
        "at": at,
        "number": batch.lines,
        "named": provider_batch_id,
        "for_what": error,
    }
    await _CHANGE.execute_each(connection, [changed])


@query
async def list_open_batches(connection: Connection) -> list[str]:
    """Return the ids of open batches, oldest first."""
    found = await _OPEN.fetch(connection)
    return [batch_id for batch_id, _ in sorted(found, key=itemgetter(1))]


@query
async def load_batch(connection: Connection, batch_id: str) -> StoredBatch | None:
    """Return the current row of a batch; None if no batch has this id."""
    found = await _ONE.fetch(connection, of_batch=batch_id)
    return StoredBatch(*found[0]) if found else None


@query
async def list_newest_batches(
    connection: Connection, states: Sequence[BatchState], before: datetime, most: int
) -> list[StoredBatch]:
    """Return the newest `most` batches in these states, newest first.

    Only batches that were created before the moment `before` count.
    """
    wanted = {"among": list(states), "before": before, "most": most}
    found = await _NEWEST.fetch(connection, **wanted)
    made = (StoredBatch(*row) for row in found)
    return sorted(made, key=lambda each: each.created_at, reverse=True)
