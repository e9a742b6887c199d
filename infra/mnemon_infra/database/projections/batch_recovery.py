"""Recovery of batches that the log has and the tables lack, for example after a rebuild.

A submitted batch costs money, and so does an intended batch that has reached the provider. So the windows of
both are kept out of new batches, and an intended batch is submitted only if the provider does not have it.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Select, bindparam, exists, func, select, text
from sqlalchemy.dialects.postgresql import insert

from mnemon_contracts.events.memory import BatchIntendedV1, Window
from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.database.engine import Connection, Database, Lookup, Statement, make_parameter, query
from mnemon_infra.database.erasure.users import drop_erased_windows
from mnemon_infra.database.query_parts.item_states import extract_position
from mnemon_infra.database.tables import OF_BATCHES, batches, windows
from mnemon_infra.database.tables import memory_events as events
from mnemon_infra.database.windows import batches as batch_rows
from mnemon_infra.database.windows.batches import StoredBatch
from mnemon_infra.database.windows.window_repository import StoredWindow


class _BatchEvent(NamedTuple):
    """An event of a batch; events sort by log position."""

    seq: int
    tenant: str
    user: str
    event: str
    at: datetime
    body: dict[str, Any]


_OF_BATCHES = text(OF_BATCHES)
_PLACE = ("tenant", "user_id", "conversation", "from_seq")
_VALUES = (*_PLACE, "to_seq", "cut_at", "due_at", "batch_id", "line")

MOST_LINES: Final = 1_000_000
"""Maximum number of lines of a batch: more than any provider accepts."""


def _select_unknown() -> Select[Any]:
    is_known = exists().where(batches.c.batch_id == events.c.item)
    return (
        select(events.c.item)
        .where(_OF_BATCHES, events.c.event == "batch.intended", events.c.body.isnot(None), ~is_known)
        .group_by(events.c.item)
        .order_by(func.min(events.c.seq))
        .limit(make_parameter("at_most", int))
    )


def _select_events() -> Select[Any]:
    columns = events.c["seq", "tenant", "user_id", "event", "at", "body"]
    return select(*columns).where(
        _OF_BATCHES, events.c.item == make_parameter("of_batch", str), events.c.body.isnot(None)
    )


def _insert_answered() -> Any:
    """Return the insertion of a user's answered windows: no window may be cut from their messages again."""
    rows = select(
        events.c.tenant,
        events.c.user_id,
        events.c.conversation,
        extract_position("from_seq"),
        extract_position("to_seq"),
        events.c.at,
        events.c.at,
        text("0"),
        text("true"),
    ).where(
        events.c.tenant == make_parameter("of_tenant", str),
        events.c.user_id == make_parameter("of_user", str),
        events.c.event == "window.answered",
        events.c.conversation.isnot(None),
        events.c.body.isnot(None),
    )
    names = (*_PLACE, "to_seq", "cut_at", "due_at", "attempts", "is_answered")
    return insert(windows).from_select(names, rows).on_conflict_do_nothing()


def _insert_intended() -> Any:
    insertion = insert(windows).values(
        {name: bindparam(name) for name in _VALUES} | {"attempts": 0, "is_answered": False}
    )
    # A later batch has the window, because the window failed in the earlier one.
    had = {name: insertion.excluded[name] for name in ("batch_id", "line")}
    return insertion.on_conflict_do_update(index_elements=_PLACE, set_=had, where=~windows.c.is_answered)


_UNKNOWN = Lookup(_select_unknown())
_BATCH_EVENTS = Lookup(_select_events())
_ANSWERED = Statement(_insert_answered())
_INTENDED = Statement(_insert_intended())


async def recover_batches(database: Database, deadline_of: Callable[[str], timedelta]) -> int:
    """Insert the batches that only their events record, each with its windows.

    Args:
        database: the live generation, which must contain all events of the log.
        deadline_of: returns the maximum duration of a batch of a tenant.

    Returns:
        The number of recovered batches.

    Raises:
        DatabaseUnavailable: some batches may be missing; the call can be repeated.
    """
    recovered = 0
    while unknown := await database.run_query(_find_unknown_batch()):
        async with database.transaction() as connection:
            await _recover_batch(connection, unknown, deadline_of)
        recovered += 1
    return recovered


@query
async def _find_unknown_batch(connection: Connection) -> str | None:
    found = await _UNKNOWN.fetch(connection, at_most=1)
    return found[0][0] if found else None


async def _recover_batch(
    connection: Connection, batch_id: str, deadline_of: Callable[[str], timedelta]
) -> None:
    found = await _BATCH_EVENTS.fetch(connection, of_batch=batch_id)
    noted = sorted(map(_BatchEvent._make, found))
    intended = [
        (each, BatchIntendedV1.model_validate(each.body)) for each in noted if each.event == "batch.intended"
    ]
    submitted = [each for each in noted if each.event == "batch.submitted"]
    over = {each[1:3] for each in noted if each.event in ("batch.completed", "batch.failed")}
    # A body names other users too, but an event counts only for the user of its subject.
    named = [
        window
        for each, event in intended
        for window in event.windows
        if (window.tenant, window.user) == each[1:3]
    ]
    asked = await _drop_erased(connection, named)
    owners = {(window.tenant, window.user) for window in asked}
    begun = intended[0][0].at
    await _ANSWERED.execute_each(
        connection, [{"of_tenant": tenant, "of_user": user} for tenant, user in owners]
    )
    await _INTENDED.execute_each(connection, [_make_row(each, batch_id, begun, over) for each in asked])
    await batch_rows.insert_batch(
        connection,
        StoredBatch(
            batch_id=batch_id,
            provider=cast("Provider", intended[0][1].provider),
            model=intended[0][1].model,
            state="completed" if owners <= over else "submitted" if submitted else "intended",
            provider_batch_id=submitted[0].body["provider_batch_id"] if submitted else None,
            lines=1 + max((each.line or 0 for each in asked if _has_line(each)), default=0),
            created_at=begun,
            changed_at=(submitted or [each for each, _ in intended])[-1].at,
            deadline_at=begun + min((deadline_of(tenant) for tenant, _ in owners), default=timedelta()),
        ),
    )


async def _drop_erased(connection: Connection, windows: Sequence[Window]) -> list[Window]:
    """Return the windows that no erasure covers; the event of the batch names the erased windows too."""
    held = [
        StoredWindow(each.tenant, each.user, each.conversation, each.from_seq, each.to_seq)
        for each in windows
    ]
    left = set(await drop_erased_windows(held)(connection))
    return [each for each, window in zip(windows, held, strict=True) if window in left]


def _make_row(window: Window, batch_id: str, at: datetime, over: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the row of a window.

    The row names no batch if the batch is over for the user, or if the line number is invalid: then the
    window waits for another batch. `over` are the users for whom the batch is over, by tenant and user.
    """
    is_held = (window.tenant, window.user) not in over and _has_line(window)
    return {
        "tenant": window.tenant,
        "user_id": window.user,
        "conversation": window.conversation,
        "from_seq": window.from_seq,
        "to_seq": window.to_seq,
        "cut_at": at,
        "due_at": at,
        "batch_id": batch_id if is_held else None,
        "line": window.line if is_held else None,
    }


def _has_line(window: Window) -> bool:
    """Return whether a batch can have the line number of a window."""
    return (window.line or 0) < MOST_LINES
