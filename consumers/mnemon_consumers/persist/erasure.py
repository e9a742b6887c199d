"""Completion of erasures whose rows are deleted from the projections that `persist` writes.

An erasure also removes messages from the log, the dead letters and the triggers, open windows, and the rows
of the other generations. It is entered in the erasure register, if one is configured.

Late events of erased users are left out by the statements that store rows, in
`mnemon_infra.database.projections.writer`. Late summaries are also removed from the log.
"""

import asyncio
from contextlib import aclosing
from typing import Final

import msgspec
from nats.aio.client import Client

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    build_notice_subject,
    build_thing_filter,
    build_user_filters,
)
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.erasure.purge import purge_messages
from mnemon_infra.broker.erasure.scope import ErasedConversation, ErasedUser, ErasureScope
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure import conversations as conversation_erasing
from mnemon_infra.database.erasure import users
from mnemon_infra.database.erasure.erased_rows import (
    count_covered_rows,
    erase_in_inactive_generations,
    mark_settled,
    release_windows,
)
from mnemon_infra.database.projections.rows import Rows, decode_event
from mnemon_infra.database.projections.writer import write_accepted_events
from mnemon_infra.database.query_parts.item_states import SUMMARIES
from mnemon_infra.delivery import Delivery
from mnemon_infra.storage.erasure_register import ErasureRegister, RegisterEntry
from mnemon_infra.storage.object_store import StoreUnavailable

REGISTER_TIMEOUT: Final = 10.0
"""Maximum time, in seconds, to write a user's entries to the erasure register; less than a delivery may
take."""


async def settle_erasures(
    connection: Client,
    database: Database,
    owner: Owner,
    position: int,
    register: ErasureRegister | None = None,
) -> bool:
    """Finish the erasures of a user and of the user's conversations.

    Args:
        connection: connection to the server that has the streams.
        database: the database that has the rows.
        owner: the user.
        position: the applied position of `persist`, which has handled every event up to this position.
        register: the register that gets an entry for each erasure; None if no register is configured.

    Returns:
        True if all erasures are finished; False if the call has to be repeated.

    Raises:
        DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. The call can be repeated.
        StoreUnavailable: the register cannot be written. The call can be repeated.
    """
    erased = await database.run_query(users.load_erasure(*owner))
    (conversations,) = await database.run_query(conversation_erasing.load_conversation_erasures([owner]))
    pending = [each for each in conversations if not each.is_settled]
    is_user_pending = erased is not None and not erased.is_settled
    # First, because the purge of many events takes minutes.
    fault = await _try_register_erasures(connection, register, owner) if pending or is_user_pending else None
    if erased is not None and not erased.is_settled:
        user = ErasedUser(owner, erased.seq, erased.at)
        if position < erased.seq or not await _settle_erasure(
            connection, database, user, user.below - 1, fault
        ):
            return False
    for each in pending:
        if position < each.erased.seq or not await _settle_erasure(
            connection, database, each.erased, 0, fault
        ):
            return False
    return True


async def remove_late_summaries(connection: Client, database: Database, rows: Rows) -> None:
    """Remove from the log the summaries whose messages were erased while a model read them.

    If an erasure is applied after this call, `settle_erasures` removes its summaries.

    Args:
        connection: connection to the server that has the log.
        database: the database, to which `rows` are written already.
        rows: the rows of events, some of which may be summaries.

    Raises:
        DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. The call can be repeated.
    """
    summaries = [row for row in rows.memories.values() if row.event in SUMMARIES]
    if not summaries:
        return
    erased = await database.run_query(users.load_erasures([row.key[:2] for row in summaries]))
    for row in summaries:
        summary = msgspec.json.decode(row.values)
        if erased[row.key[:2]].removes_window(summary["conversation"], summary["body"]["from_seq"]):
            await remove_message(connection, LOG, row.seq)


async def _try_register_erasures(
    connection: Client, register: ErasureRegister | None, owner: Owner
) -> StoreUnavailable | None:
    """Register the erasures of a user; return the error of a register that cannot be written, else None."""
    if register is None:
        return None
    try:
        async with asyncio.timeout(REGISTER_TIMEOUT):
            await register_erasures(connection, register, owner)
    except StoreUnavailable as error:
        return error
    except TimeoutError:
        return StoreUnavailable(f"{register.location} did not answer within {REGISTER_TIMEOUT:.0f} s")
    return None


async def _settle_erasure(
    connection: Client,
    database: Database,
    erased: ErasedUser | ErasedConversation,
    after: int,
    fault: StoreUnavailable | None,
) -> bool:
    """Finish one erasure; return False if it is not finished and the call has to be repeated.

    Args:
        connection: connection to the server that has the streams.
        database: the database that has the rows.
        erased: the scope of the erasure.
        after: log position after which the user's remaining events are projected again.
        fault: the error of the register, raised instead of marking the erasure as settled; None without an
            error.
    """
    # Release windows before the purge: until then, `extract` may publish answers about them.
    await release_windows(database, erased)
    is_released = "windows" not in await database.run_query(count_covered_rows(erased))
    if not await purge_messages(connection, erased) or not is_released:
        return False
    await erase_in_inactive_generations(database, erased)
    await _reproject_events(connection, database, erased, after)
    if fault:  # only now: an outage of the register does not keep texts from being removed
        raise fault
    await mark_settled(database, erased)
    return True


async def register_erasures(connection: Client, register: ErasureRegister, owner: Owner) -> None:
    """Write an entry for each of a user's erasures that the log records and the register lacks.

    Raises:
        StoreUnavailable: the register cannot be read or written.
        nats.errors.Error: NATS does not answer.
    """
    async with aclosing(read_event_pages(connection, build_thing_filter(*owner, "user"), 0)) as answers:
        async for page in answers:
            for delivery in page:
                if entry := _build_register_entry(owner, delivery):
                    await register.add(entry)


def _build_register_entry(owner: Owner, delivery: Delivery) -> RegisterEntry | None:
    """Return the entry of an erasure; None for any other event, or one that becomes a dead letter."""
    try:
        _, event, event_id = decode_event(delivery)
    except (InvalidSubject, UnknownEvent, InvalidBody):
        return None
    if not isinstance(event, UserErasedV1):
        return None
    return RegisterEntry(
        tenant=owner[0],
        user=owner[1],
        event_id=event_id,
        position=delivery.sequence,
        at=round(delivery.stored_at * 1e9),
        event=event,
    )


async def _reproject_events(connection: Client, database: Database, erased: ErasureScope, after: int) -> None:
    """Project the user's remaining events again, and remove events that the erasure covers from the log.

    Only events after the log position `after` are read. An event may have the id of an erased event, and so
    have counted as its copy; such an event gets its row now. An event that a model derived from erased
    messages during the erasure is removed.
    """
    for pattern in build_user_filters(*erased.owner):
        async with aclosing(read_event_pages(connection, pattern, after)) as answers:
            async for page in answers:
                for delivery in page:
                    if erased.removes(delivery):
                        await remove_message(connection, LOG, delivery.sequence)
                await write_accepted_events(database, page)
    # Caches may have been filled since the notice of the erasure. Without a position, as later events of the
    # user may not be projected yet.
    await connection.publish(build_notice_subject(*erased.owner))
