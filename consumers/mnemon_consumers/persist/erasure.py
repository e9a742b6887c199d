"""Finishes erasures whose rows are deleted already: log, dead letters, triggers and windows in progress."""

from contextlib import aclosing

from nats.aio.client import Client

from mnemon_consumers.persist.decide import plan
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner, user_filters
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.streams.erasure_scope import ErasedConversation, ErasedUser, ErasureScope
from mnemon_infra.broker.streams.log_reader import read_pages
from mnemon_infra.broker.streams.purge import purge_messages
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure import conversations as conversation_erasing
from mnemon_infra.database.erasure import users
from mnemon_infra.database.erasure.inactive_generations import forget
from mnemon_infra.database.messages.conversations import counted
from mnemon_infra.database.projections.writer import write


async def settled(connection: Client, database: Database, owner: Owner, position: int) -> bool:
    """Finish the erasures of a user and of the user's conversations.

    Args:
        connection: connection to the server that has the streams.
        database: the database that has the rows.
        owner: the user.
        position: position up to which the log is projected: everything below was read by then, or never will
            be.

    Returns:
        False if an erasure is not finished and has to be tried again.

    Raises:
        DatabaseUnavailable, nats.errors.Error: the call can be repeated.
    """
    erased = await database.read(users.erasure(*owner))
    if erased is not None and not erased.is_settled:
        user = ErasedUser(owner, erased.seq, erased.at)
        if position < erased.seq or not await _settle_user(connection, database, user):
            return False
    (conversations,) = await database.read(conversation_erasing.conversation_erasures_of([owner]))
    for each in conversations:
        if not each.is_settled and (
            position < each.erased.seq or not await _settle_conversation(connection, database, each.erased)
        ):
            return False
    return True


async def _settle_user(connection: Client, database: Database, user: ErasedUser) -> bool:
    if not await purge_messages(connection, user):
        return False
    await users.release(database, *user.owner, user.below)
    if "windows" in await database.read(users.counted_below(*user.owner, user.below)):
        return False
    await forget(database, user)
    await _look_through(connection, database, user, user.below - 1)
    await users.settle(database, *user.owner, user.below)
    return True


async def _settle_conversation(connection: Client, database: Database, erased: ErasedConversation) -> bool:
    if not await purge_messages(connection, erased):
        return False
    await conversation_erasing.release(database, erased)
    if "windows" in await database.read(counted(erased)):
        return False
    await forget(database, erased)
    await _look_through(connection, database, erased, 0)
    await conversation_erasing.settle(database, erased)
    return True


async def _look_through(connection: Client, database: Database, erased: ErasureScope, after: int) -> None:
    """Project the user's remaining events again, and remove those that the erasure covers from the log.

    An event with the id of an event that is now erased may have been taken for a copy of it: it is written
    again. An event that a model made of erased messages during the erasure is removed.
    """
    for pattern in user_filters(*erased.owner):
        async with aclosing(read_pages(connection, pattern, after)) as answers:
            async for page in answers:
                for delivery in page:
                    if erased.takes(delivery):
                        await remove_message(connection, LOG, delivery.sequence)
                await write(database, plan(page).rows)
