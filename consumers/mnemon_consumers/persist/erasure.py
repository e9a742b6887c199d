"""Completion of erasures whose rows are deleted: in log, dead letters, triggers and open windows."""

from contextlib import aclosing

from nats.aio.client import Client

from mnemon_consumers.persist.decide import plan_batch
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner, user_filters
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.streams.erasure_scope import ErasedConversation, ErasedUser, ErasureScope
from mnemon_infra.broker.streams.log_reader import read_pages
from mnemon_infra.broker.streams.purge import purge_messages
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure import conversations as conversation_erasing
from mnemon_infra.database.erasure import users
from mnemon_infra.database.erasure.erased_rows import (
    count_covered_rows,
    erase_in_inactive_generations,
    mark_settled,
    release_windows,
)
from mnemon_infra.database.projections.writer import write_rows


async def settle_erasures(connection: Client, database: Database, owner: Owner, position: int) -> bool:
    """Finish the erasures of a user and of the user's conversations.

    Args:
        connection: connection to the server that has the streams.
        database: the database that has the rows.
        owner: the user.
        position: position up to which the log is projected; no event below this position will be read later.

    Returns:
        False if an erasure is not finished and the call has to be repeated.

    Raises:
        DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. The call can be repeated.
    """
    erased = await database.run_query(users.load_erasure(*owner))
    if erased is not None and not erased.is_settled:
        user = ErasedUser(owner, erased.seq, erased.at)
        if position < erased.seq or not await _settle(connection, database, user, user.below - 1):
            return False
    (conversations,) = await database.run_query(conversation_erasing.load_conversation_erasures([owner]))
    for each in conversations:
        if not each.is_settled and (
            position < each.erased.seq or not await _settle(connection, database, each.erased, 0)
        ):
            return False
    return True


async def _settle(
    connection: Client, database: Database, erased: ErasedUser | ErasedConversation, after: int
) -> bool:
    if not await purge_messages(connection, erased):
        return False
    await release_windows(database, erased)
    if "windows" in await database.run_query(count_covered_rows(erased)):
        return False
    await erase_in_inactive_generations(database, erased)
    await _project_again(connection, database, erased, after)
    await mark_settled(database, erased)
    return True


async def _project_again(connection: Client, database: Database, erased: ErasureScope, after: int) -> None:
    """Project the user's remaining events again, and remove events that the erasure covers from the log.

    An event that was taken for a copy of a now erased event with the same id is written again. An event that
    a model derived from erased messages during the erasure is removed.
    """
    for pattern in user_filters(*erased.owner):
        async with aclosing(read_pages(connection, pattern, after)) as answers:
            async for page in answers:
                for delivery in page:
                    if erased.removes(delivery):
                        await remove_message(connection, LOG, delivery.sequence)
                await write_rows(database, plan_batch(page).rows)
