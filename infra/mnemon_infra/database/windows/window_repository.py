"""Repository of windows that extraction has cut and is working on."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Select, Update, and_, bindparam, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, Statement, make_parameter, query
from mnemon_infra.database.messages.message_ranges import MessageRange
from mnemon_infra.database.tables import windows


class StoredWindow(NamedTuple):
    """A window with the state of its extraction; windows sort by user, conversation and position.

    Attributes:
        attempts: number of attempts that have failed.
        batch_id: the batch that contains the window, or contained it when it was answered; None if there is
            no such batch.
        line: line number of the window in the batch, from 0; None if `batch_id` is None.
    """

    tenant: str
    user: str
    conversation: str
    from_seq: int
    to_seq: int
    attempts: int = 0
    batch_id: str | None = None
    line: int | None = None

    @property
    def owner(self) -> Owner:
        return self.tenant, self.user

    @property
    def message_range(self) -> MessageRange:
        """The range of log positions of the window's messages."""
        return MessageRange(self.tenant, self.user, self.conversation, self.from_seq, self.to_seq)


class FailedWindow(NamedTuple):
    """A window that has to be requested again.

    Attributes:
        attempts: number of attempts that have failed so far.
        due_at: the earliest time of the next attempt.
        is_online: True to request the window online from now on, whatever the settings say; False changes
            nothing.
    """

    window: StoredWindow
    attempts: int
    due_at: datetime
    is_online: bool = False


WINDOW_COLUMNS: Final = (
    *windows.c["tenant", "user_id", "conversation", "from_seq", "to_seq", "attempts", "batch_id", "line"],
)
"""The columns of a `StoredWindow`, in the order of its fields."""

_THIS: Final = and_(
    windows.c.tenant == bindparam("of_tenant"),
    windows.c.user_id == bindparam("of_user"),
    windows.c.conversation == bindparam("of_conversation"),
    windows.c.from_seq == bindparam("of_from_seq"),
)


def _insert_unknown() -> Any:
    values: dict[str, Any] = {
        column.name: bindparam(column.name) for column in windows.c if column.name != "is_online"
    }
    return insert(windows).values(values).on_conflict_do_nothing()


def _update_window(**values: Any) -> Update:
    return update(windows).where(_THIS).values(**values)


def _select_of_batch(*only: ColumnElement[bool]) -> Select[Any]:
    return select(*WINDOW_COLUMNS).where(windows.c.batch_id == make_parameter("of_batch", str), *only)


_INSERT = Statement(_insert_unknown())
_OF_BATCH = Lookup(_select_of_batch(~windows.c.is_answered))
_OF_LINE = Lookup(
    _select_of_batch(
        windows.c.line == make_parameter("of_line", int), ~windows.c.is_answered
    ).with_for_update()
)
_COUNTED = Lookup(
    select(windows.c.tenant, windows.c.user_id, func.count().filter(windows.c.is_answered), func.count())
    .where(windows.c.batch_id == make_parameter("of_batch", str))
    .group_by(windows.c.tenant, windows.c.user_id)
)
_HOLD = Statement(_update_window(batch_id=bindparam("batch"), line=bindparam("place")))
_ANSWERED = Statement(_update_window(is_answered=True))
_DELETED = Statement(delete(windows).where(_THIS))
_AGAIN = Statement(
    _update_window(
        attempts=bindparam("failed"),
        due_at=bindparam("due"),
        batch_id=None,
        line=None,
        is_online=or_(windows.c.is_online, make_parameter("by_itself", bool)),
    ).where(~windows.c.is_answered)
)
_REOPENED = Statement(
    _update_window(
        attempts=func.greatest(windows.c.attempts + 1, make_parameter("failed", int)),
        due_at=bindparam("due"),
        batch_id=None,
        line=None,
        is_online=True,
        is_answered=False,
    ).where(windows.c.is_answered)
)


async def insert_windows(
    connection: Connection, cut: Iterable[StoredWindow], now: datetime, *, answered: bool = False
) -> None:
    """Insert the windows `cut`, due at `now`; existing windows stay unchanged.

    `answered` is True for windows that have an answer already.
    """
    rows = [
        {
            **dict(zip((column.name for column in WINDOW_COLUMNS), each, strict=True)),
            "cut_at": now,
            "due_at": now,
            "is_answered": answered,
        }
        for each in cut
    ]
    if rows:
        await _INSERT.execute_each(connection, rows)


async def assign_to_batch(connection: Connection, batch_id: str, taken: Iterable[StoredWindow]) -> None:
    """Assign windows to a batch, each with its line number."""
    await _HOLD.execute_each(
        connection, [{**_bind_window(each), "batch": batch_id, "place": each.line} for each in taken]
    )


async def mark_answered(connection: Connection, answered: Iterable[StoredWindow]) -> None:
    """Mark windows as answered, so that they are not requested again."""
    if rows := [_bind_window(each) for each in answered]:
        await _ANSWERED.execute_each(connection, rows)


async def delete_windows(connection: Connection, erased: Iterable[StoredWindow]) -> None:
    """Delete the windows `erased`."""
    if rows := [_bind_window(each) for each in erased]:
        await _DELETED.execute_each(connection, rows)


async def reopen_windows(connection: Connection, given_up: Iterable[StoredWindow], now: datetime) -> None:
    """Reopen windows that were given up, for another attempt online; insert those that have no row."""
    windows_of_it = list(given_up)
    await insert_windows(connection, windows_of_it, now, answered=True)
    if rows := [{**_bind_window(each), "failed": each.attempts, "due": now} for each in windows_of_it]:
        await _REOPENED.execute_each(connection, rows)


async def requeue_windows(connection: Connection, failed: Iterable[FailedWindow]) -> None:
    """Release failed windows from their batch for another attempt; answered windows stay answered."""
    rows = [
        {
            **_bind_window(each.window),
            "failed": each.attempts,
            "due": each.due_at,
            "by_itself": each.is_online,
        }
        for each in failed
    ]
    if rows:
        await _AGAIN.execute_each(connection, rows)


@query
async def load_batch_windows(connection: Connection, batch_id: str) -> list[StoredWindow]:
    """Return the unanswered windows of a batch, by user, conversation and position."""
    found = await _OF_BATCH.fetch(connection, of_batch=batch_id)
    return sorted(map(StoredWindow._make, found))


async def lock_windows_by_line(
    connection: Connection, batch_id: str, lines: Iterable[int]
) -> list[StoredWindow]:
    """Lock and return the unanswered windows of some lines of a batch.

    The locks last until the end of the transaction.
    """
    found = await _OF_LINE.fetch_each(connection, [{"of_batch": batch_id, "of_line": line} for line in lines])
    return sorted(StoredWindow._make(row) for rows in found for row in rows)


@query
async def count_windows_by_user(connection: Connection, batch_id: str) -> dict[Owner, tuple[int, int]]:
    """Return two counts for each user in a batch: the user's answered windows in it, and all of them."""
    found = await _COUNTED.fetch(connection, of_batch=batch_id)
    return {(tenant, user): (answered, all_) for tenant, user, answered, all_ in found}


def _bind_window(window: StoredWindow) -> dict[str, Any]:
    return {
        "of_tenant": window.tenant,
        "of_user": window.user,
        "of_conversation": window.conversation,
        "of_from_seq": window.from_seq,
    }
