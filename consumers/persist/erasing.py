"""What is left to do for a user whose rows are erased: log, dead letters, triggers, and stretches in hand."""

from contextlib import aclosing

from nats.aio.client import Client

from consumers.persist.decide import plan
from contracts.streams import LOG
from contracts.subjects import user_filters
from infra.broker.letters import remove
from infra.broker.log_reader import pages
from infra.broker.purging import purge
from infra.database.engine import Database
from infra.database.erasing import counted_below, erasure, release, settle
from infra.database.projecting import write
from infra.database.rows import Owner
from infra.erased import ErasedUser


async def settled(connection: Client, database: Database, owner: Owner, position: int) -> bool:
    """Do it; False where it is not done yet, and is to be tried again.

    Args:
        connection: where the streams are.
        database: where the rows are.
        owner: whose.
        position: up to there the log is projected: what lies below was read by then, or never will be.

    Raises:
        DatabaseUnavailable, nats.errors.Error: it may be done again.
    """
    erased = await database.read(erasure(*owner))
    if erased is None or erased.is_settled:
        return True
    if position < erased.seq:
        return False
    taking = ErasedUser(owner, erased.seq, erased.at)
    if not await purge(connection, taking):
        return False
    await release(database, *owner, erased.seq)
    if "windows" in await database.read(counted_below(*owner, erased.seq)):
        return False
    await _look_beyond(connection, database, taking)
    await settle(database, *owner, erased.seq)
    return True


async def _look_beyond(connection: Client, database: Database, taking: ErasedUser) -> None:
    """Go through what the log has of the user since.

    What came with the id of an event that is erased now may have been taken for a copy of it: it is written
    again. What a model made of erased messages at that very moment is removed.
    """
    for pattern in user_filters(*taking.owner):
        async with aclosing(pages(connection, pattern, taking.below - 1)) as answers:
            async for page in answers:
                for delivery in page:
                    if taking.takes(delivery):
                        await remove(connection, LOG, delivery.sequence)
                await write(database, plan(page).rows)
